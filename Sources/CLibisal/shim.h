// What the worker's storage needs of C: the CRC32C of Intel's ISA-L, and some Linux calls. Swift imports glibc without
// _GNU_SOURCE, which hides these calls and their flags; the prototypes below name the same symbols under names of our own,
// so that they can't collide with glibc's should it ever show them.

#ifndef MUSTER_CLIBISAL_SHIM_H
#define MUSTER_CLIBISAL_SHIM_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <isa-l/crc.h>

// RENAME_NOREPLACE and RENAME_EXCHANGE of <linux/fs.h>.
#define MUSTER_RENAME_NOREPLACE 1u
#define MUSTER_RENAME_EXCHANGE 2u

// FALLOC_FL_KEEP_SIZE of <linux/falloc.h>.
#define MUSTER_FALLOC_FL_KEEP_SIZE 1

int muster_renameat2(int old_directory, const char *old_name, int new_directory, const char *new_name, unsigned int flags)
    __asm__("renameat2");

int muster_fallocate(int descriptor, int mode, int64_t offset, int64_t length) __asm__("fallocate64");

int muster_syncfs(int descriptor) __asm__("syncfs");

ssize_t muster_copy_file_range(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t length,
                               unsigned int flags) __asm__("copy_file_range");

ssize_t muster_fgetxattr(int descriptor, const char *name, void *value, size_t size) __asm__("fgetxattr");

int muster_fsetxattr(int descriptor, const char *name, const void *value, size_t size, int flags) __asm__("fsetxattr");

// FICLONE of <linux/fs.h>: gives one file the content of another without copying it, where the file system can. Here in C, since
// Swift imports no variadic function.
static inline int muster_clone(int copy, int source) { return ioctl(copy, _IOW(0x94, 9, int), source); }

// openat2() with O_PATH | O_NOFOLLOW | O_CLOEXEC and RESOLVE_NO_SYMLINKS of <linux/openat2.h>: ENOENT where nothing stands at a path and no link is on the
// way, in one call. glibc has no function for it. Linux 5.6.
long muster_syscall(long number, ...) __asm__("syscall");

static inline int muster_open_unlinked(int directory, const char *path) {
    struct {
        uint64_t flags, mode, resolve;
    } how = {010000000 | O_NOFOLLOW | O_CLOEXEC, 0, 4};
    return (int)muster_syscall(437, directory, path, &how, sizeof how);
}

// Lets the calling thread run and read when no other thread wants to: nice 19, and IOPRIO_CLASS_IDLE of <linux/ioprio.h>, for which glibc has no
// function. Both may be refused, and then change nothing. Can be repeated.
static inline void muster_be_idle(void) {
    (void)setpriority(PRIO_PROCESS, 0, 19);
    (void)muster_syscall(SYS_ioprio_set, 1, 0, 3 << 13);
}

#endif
