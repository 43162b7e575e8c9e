// Swift cannot call C functions with variable arguments, and curl_easy_setopt, curl_easy_getinfo and curl_multi_setopt
// are such functions. Each wrapper below fixes the one type that its family of options takes (long, curl_off_t, string,
// pointer, list, callback), so that the wrong width is a compile error in Swift instead of a misread argument in C.

#ifndef MUSTER_CLIBCURL_SHIM_H
#define MUSTER_CLIBCURL_SHIM_H

#include <curl/curl.h>

static inline CURLcode muster_curl_global_init(void) {
    return curl_global_init(CURL_GLOBAL_ALL);
}

static inline CURLcode muster_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode muster_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode muster_curl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode muster_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode muster_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(handle, option, value);
}

// CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION.
static inline CURLcode muster_curl_set_write_callback(CURL *handle, CURLoption option, curl_write_callback value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode muster_curl_set_read_callback(CURL *handle, curl_read_callback value) {
    return curl_easy_setopt(handle, CURLOPT_READFUNCTION, value);
}

static inline CURLcode muster_curl_set_seek_callback(CURL *handle, curl_seek_callback value) {
    return curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, value);
}

static inline CURLcode muster_curl_set_prereq_callback(CURL *handle, curl_prereq_callback value) {
    return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, value);
}

static inline CURLcode muster_curl_set_progress_callback(CURL *handle, curl_xferinfo_callback value) {
    return curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, value);
}

static inline CURLcode muster_curl_set_opensocket_callback(CURL *handle, curl_opensocket_callback value) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, value);
}

static inline CURLcode muster_curl_set_closesocket_callback(CURL *handle, curl_closesocket_callback value) {
    return curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, value);
}

static inline CURLcode muster_curl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode muster_curl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(handle, info, value);
}

// The string belongs to the handle: copy it before the next call on the handle.
static inline CURLcode muster_curl_get_string(CURL *handle, CURLINFO info, const char **value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode muster_curl_get_pointer(CURL *handle, CURLINFO info, void **value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLMcode muster_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

// A CURLMsg holds its result in an anonymous union, which this call spares the Swift side.
static inline CURLcode muster_curl_message_result(const CURLMsg *message) {
    return message->data.result;
}

static inline CURLSHcode muster_curl_share_sessions(CURLSH *share) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

// CURLAUTH_… are macros with casts, which Swift does not import. libcurl shows credentials unasked if it may choose only one.
static inline long muster_curl_auth_on_challenge(void) {
    return (long)(CURLAUTH_BASIC | CURLAUTH_DIGEST);
}

// CURL_SOCKET_BAD is a macro with a cast, which Swift does not import.
static inline curl_socket_t muster_curl_socket_bad(void) {
    return CURL_SOCKET_BAD;
}

#endif
