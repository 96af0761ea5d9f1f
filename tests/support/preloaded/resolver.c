/* Preloaded into a server (LD_PRELOAD): a resolver that changes its mind. The first answer about `rebind.test`, and each second
 * one after it, is an address of TEST-NET-3, which refuses connections; the others are the loopback address. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static int asked;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    if (node && !strcmp(node, "rebind.test")) {
        node = __atomic_fetch_add(&asked, 1, __ATOMIC_SEQ_CST) % 2 ? "127.0.0.1" : "203.0.113.1";
    }
    return next(node, service, hints, found);
}

int connect(int socket, const struct sockaddr *address, socklen_t length) {
    int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    if (address->sa_family == AF_INET && in->sin_addr.s_addr == inet_addr("203.0.113.1")) {
        errno = ECONNREFUSED;
        return -1;
    }
    return next(socket, address, length);
}
