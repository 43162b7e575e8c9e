#ifndef MUSTER_CLIBPQ_SHIM_H
#define MUSTER_CLIBPQ_SHIM_H

#include <libpq-fe.h>

/*
 * A thread that waits in poll(2) for a server's answer is woken through an eventfd. Swift's Glibc module does not carry
 * this header, hence it comes with the library whose socket is waited for.
 */
#include <sys/eventfd.h>

#endif
