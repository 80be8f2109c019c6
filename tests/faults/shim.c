// A library to preload that lets the n-th call of a kind fail, once or for ever from then on.
//   FAULT_KIND   open read write fsync syncdir rename close mkdir unlink lock thread malloc
//   FAULT_N      which call fails, from 1; 0 counts only
//   FAULT_ERRNO  the number it fails with
//   FAULT_EVER   if set, all later calls of the kind fail as well
//   FAULT_REPORT a file of 16 numbers of 64 bits: calls of each kind, and last how many failed
// Calls count from the constructor on: the loader is done, the program's static initialisers are
// not. What the C library calls within itself (standard output and error) does not come here.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
  OPEN,
  READ,
  WRITE,
  FSYNC,
  SYNCDIR,
  RENAME,
  CLOSE,
  MKDIR,
  UNLINK,
  LOCK,
  THREAD,
  MALLOC,
  KINDS
};
static const char* const names[KINDS] = {"open",  "read",  "write",  "fsync", "syncdir", "rename",
                                         "close", "mkdir", "unlink", "lock",  "thread",  "malloc"};
static struct { uint64_t calls[15], failed; } nowhere, *report = &nowhere;
static int ready, kind = -1, error, ever;
static uint64_t wanted;

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("FAULT_KIND"), *n = getenv("FAULT_N"), *number = getenv("FAULT_ERRNO"),
             *path = getenv("FAULT_REPORT");
  for (int i = 0; name && i < KINDS; ++i)
    if (strcmp(name, names[i]) == 0) kind = i;
  wanted = n ? strtoull(n, NULL, 10) : 0;
  error = number ? atoi(number) : EIO;
  ever = getenv("FAULT_EVER") != NULL;
  const long file = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
  if (file >= 0) {
    void* at = mmap(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, (int)file, 0);
    if (at != MAP_FAILED) report = at;
    syscall(SYS_close, file);
  }
  ready = 1;
}

/// Counts a call; whether it is to fail. errno is set then.
static int fails(int k) {
  if (!ready) return 0;
  const uint64_t n = __atomic_add_fetch(&report->calls[k], 1, __ATOMIC_RELAXED);
  if (k != kind || wanted == 0 || !(ever ? n >= wanted : n == wanted)) return 0;
  __atomic_add_fetch(&report->failed, 1, __ATOMIC_RELAXED);
  errno = error;
  return 1;
}

/// Of calls that no program repeats after EINTR: those fail with other numbers only.
static int fails_for_good(int k) { return fails(k) && (error != EINTR || (--report->failed, 0)); }

#define REAL(type, name, ...)       \
  static type (*real)(__VA_ARGS__); \
  if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int open_at(int directory, const char* path, int flags, mode_t mode) {
  return fails(OPEN) ? -1 : (int)syscall(SYS_openat, directory, path, flags, mode);
}
#define MODE_OF(flags, last)             \
  mode_t mode = 0;                       \
  if ((flags) & (O_CREAT | O_TMPFILE)) { \
    va_list list;                        \
    va_start(list, last);                \
    mode = va_arg(list, mode_t);         \
    va_end(list);                        \
  }
int open(const char* path, int flags, ...) {
  MODE_OF(flags, flags)
  return open_at(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags, flags)
  return open_at(AT_FDCWD, path, flags, mode);
}
int openat(int directory, const char* path, int flags, ...) {
  MODE_OF(flags, flags)
  return open_at(directory, path, flags, mode);
}
int openat64(int directory, const char* path, int flags, ...) {
  MODE_OF(flags, flags)
  return open_at(directory, path, flags, mode);
}
int __open_2(const char* path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __open64_2(const char* path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __openat_2(int directory, const char* path, int flags) {
  return open_at(directory, path, flags, 0);
}
int __openat64_2(int directory, const char* path, int flags) {
  return open_at(directory, path, flags, 0);
}
int creat(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char* path, mode_t mode) { return creat(path, mode); }
FILE* fopen(const char* path, const char* mode) {
  REAL(FILE*, "fopen", const char*, const char*);
  return fails_for_good(OPEN) ? NULL : real(path, mode);
}
FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }
DIR* opendir(const char* path) {
  REAL(DIR*, "opendir", const char*);
  return fails_for_good(OPEN) ? NULL : real(path);
}
int mkstemp(char* path) {
  REAL(int, "mkstemp", char*);
  return fails_for_good(OPEN) ? -1 : real(path);
}
int mkstemp64(char* path) { return mkstemp(path); }
int mkostemp(char* path, int flags) {
  REAL(int, "mkostemp", char*, int);
  return fails_for_good(OPEN) ? -1 : real(path, flags);
}
int mkostemp64(char* path, int flags) { return mkostemp(path, flags); }

ssize_t read(int file, void* to, size_t size) {
  return fails(READ) ? -1 : syscall(SYS_read, file, to, size);
}
ssize_t __read_chk(int file, void* to, size_t size, size_t room) {
  if (size > room) abort();
  return read(file, to, size);
}
ssize_t pread(int file, void* to, size_t size, off_t at) {
  return fails(READ) ? -1 : syscall(SYS_pread64, file, to, size, at);
}
ssize_t pread64(int file, void* to, size_t size, off64_t at) { return pread(file, to, size, at); }
ssize_t readv(int file, const struct iovec* to, int count) {
  return fails(READ) ? -1 : syscall(SYS_readv, file, to, count);
}
ssize_t write(int file, const void* from, size_t size) {
  return fails(WRITE) ? -1 : syscall(SYS_write, file, from, size);
}
ssize_t pwrite(int file, const void* from, size_t size, off_t at) {
  return fails(WRITE) ? -1 : syscall(SYS_pwrite64, file, from, size, at);
}
ssize_t pwrite64(int file, const void* from, size_t size, off64_t at) {
  return pwrite(file, from, size, at);
}
ssize_t writev(int file, const struct iovec* from, int count) {
  return fails(WRITE) ? -1 : syscall(SYS_writev, file, from, count);
}

static int sync_kind(int file) {
  struct stat status;
  return fstat(file, &status) == 0 && S_ISDIR(status.st_mode) ? SYNCDIR : FSYNC;
}
int fsync(int file) { return fails(sync_kind(file)) ? -1 : (int)syscall(SYS_fsync, file); }
int fdatasync(int file) { return fails(sync_kind(file)) ? -1 : (int)syscall(SYS_fdatasync, file); }

int renameat2(int d, const char* from, int e, const char* to, unsigned flags) {
  return fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, d, from, e, to, flags);
}
int renameat(int d, const char* from, int e, const char* to) {
  return renameat2(d, from, e, to, 0);
}
int rename(const char* from, const char* to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int d, const char* from, int e, const char* to, int flags) {
  return fails(RENAME) ? -1 : (int)syscall(SYS_linkat, d, from, e, to, flags);
}
int link(const char* from, const char* to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int close(int file) {  // a descriptor is gone whatever close() says
  const int failing = fails(CLOSE);
  const long result = syscall(SYS_close, file);
  if (failing) errno = error;
  return failing ? -1 : (int)result;
}
int mkdirat(int d, const char* path, mode_t mode) {
  return fails(MKDIR) ? -1 : (int)syscall(SYS_mkdirat, d, path, mode);
}
int mkdir(const char* path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
int unlinkat(int d, const char* path, int flags) {
  return fails(UNLINK) ? -1 : (int)syscall(SYS_unlinkat, d, path, flags);
}
int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int remove(const char* path) {
  REAL(int, "remove", const char*);
  return fails(UNLINK) ? -1 : real(path);
}

int flock(int file, int operation) {
  return fails(LOCK) ? -1 : (int)syscall(SYS_flock, file, operation);
}
int fcntl(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  const int lock = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
                   command == F_OFD_SETLKW;
  return lock && fails(LOCK) ? -1 : (int)syscall(SYS_fcntl, file, command, argument);
}
int fcntl64(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  return fcntl(file, command, argument);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  REAL(int, "pthread_create", pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return fails(THREAD) ? error : real(thread, attributes, run, argument);
}

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) { return fails(MALLOC) ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return fails(MALLOC) ? NULL : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) { return fails(MALLOC) ? NULL : __libc_realloc(old, size); }
void* reallocarray(void* old, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(old, bytes);
}
void* memalign(size_t alignment, size_t size) {
  return fails(MALLOC) ? NULL : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** to, size_t alignment, size_t size) {
  if (fails(MALLOC)) return error;
  void* at = __libc_memalign(alignment, size);
  if (!at && size) return ENOMEM;
  *to = at;
  return 0;
}
