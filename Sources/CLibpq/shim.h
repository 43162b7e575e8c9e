#ifndef MUSTER_CLIBPQ_SHIM_H
#define MUSTER_CLIBPQ_SHIM_H

#include <libpq-fe.h>

#endif
