// What Swift's Glibc module does not carry of the system.

#ifndef MUSTER_CEVENTFD_SHIM_H
#define MUSTER_CEVENTFD_SHIM_H

#include <sys/eventfd.h>

#endif
