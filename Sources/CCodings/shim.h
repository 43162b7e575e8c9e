// The libraries that take codings off a content: gzip and deflate by Intel's ISA-L, br by Google's brotli, zstd by Meta's zstd.

#ifndef MUSTER_CCODINGS_SHIM_H
#define MUSTER_CCODINGS_SHIM_H

#include <stdint.h>
#include <isa-l/igzip_lib.h>
#include <brotli/decode.h>
#include <zstd.h>

// The state is larger than what Swift imports: it is made and read here.
static inline int muster_inflate_is_over(const struct inflate_state *state) { return state->block_state == ISAL_BLOCK_FINISH; }
// How many whole bytes it has taken beyond what it has used.
static inline int muster_inflate_unused(const struct inflate_state *state) { return state->read_in_length / 8; }

#endif
