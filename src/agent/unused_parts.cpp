// Replacements for parts of the static libraries that the agent does not need. They keep the linker from
// including the libraries' own definitions with all their dependencies. They are weak, so if a library's own
// definition is linked anyway, that one is used. This file is only part of the static program.

#include <cstdio>
#include <cstdlib>
#include <cstring>

// Replaces the C++ library's handler, which needs 50 KB to print the type of the exception.
namespace __gnu_cxx {  // NOLINT(bugprone-reserved-identifier)
void __verbose_terminate_handler();
void __verbose_terminate_handler() {
  std::abort();
}
}  // namespace __gnu_cxx

// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
// The loader of shared objects, used for character set converters and name services: 16 KB.
[[gnu::weak]] void* __libc_dlopen_mode(const char* /*file*/, int /*mode*/) {
  return nullptr;
}
[[gnu::weak]] void* __libc_dlsym(void* /*map*/, const char* /*name*/) {
  return nullptr;
}
[[gnu::weak]] void* __libc_dlvsym(void* /*map*/, const char* /*name*/, const char* /*version*/) {
  return nullptr;
}
[[gnu::weak]] int __libc_dlclose(void* /*map*/) {
  return 0;
}
// Without these, the C library's own messages would require another 20 KB: formatting of numbers and wide
// characters, and translations.
[[gnu::weak, noreturn]] void __assert_fail(const char* /*assertion*/, const char* /*file*/, unsigned /*line*/,
                                           const char* /*function*/) noexcept {
  std::abort();
}
[[gnu::weak]] char* __dcgettext(const char* /*domain*/, const char* text, int /*category*/) {
  return const_cast<char*>(text);
}
[[gnu::weak]] void __netlink_assert_response(int /*socket*/, long /*size*/) {}  // its callers check the size
// The agent writes without stdio. These functions alone would pull in stdio, including formatting of
// floating-point numbers and wide characters, locales and character sets: 90 KB. malloc_stats() and
// malloc_info() print, and fork() and pthread_create() lock the streams.
[[gnu::weak]] FILE* stderr = nullptr;
[[gnu::weak]] FILE* stdout = nullptr;
[[gnu::weak]] int fprintf(FILE* /*stream*/, const char* /*format*/, ...) {
  return -1;
}
[[gnu::weak]] int __snprintf(char* /*text*/, size_t /*size*/, const char* /*format*/, ...) {
  return -1;
}
[[gnu::weak]] int __fxprintf(void* /*file*/, const char* /*format*/, ...) {
  return -1;
}
// Looks up character classes, for each thread.
[[gnu::weak]] void __ctype_init() {}
[[gnu::weak]] void _IO_enable_locks() {}
[[gnu::weak]] void _IO_list_lock() {}
[[gnu::weak]] void _IO_list_unlock() {}
[[gnu::weak]] void _IO_list_resetlock() {}
[[gnu::weak]] void* _IO_iter_begin() {
  return nullptr;
}
[[gnu::weak]] void* _IO_iter_end() {
  return nullptr;
}
[[gnu::weak]] void* _IO_iter_next(void* at) {
  return at;
}
[[gnu::weak]] void* _IO_iter_file(void* at) {
  return at;
}
// The C library's version would print the number of an unknown error.
[[gnu::weak]] char* strerror(int error) noexcept {
  const char* const text = ::strerrordesc_np(error);
  return const_cast<char*>(text == nullptr ? "unknown error" : text);
}
// Called by posix_spawn() for the limit of descriptors, where -1 means none, and by libsodium's protected
// memory, which is not used.
[[gnu::weak]] long sysconf(int /*name*/) noexcept {
  return -1;
}
[[gnu::weak]] long __sysconf(int /*name*/) {
  return -1;
}
// Used by malloc(), which creates arenas depending on the number of processors. C libraries call one or the
// other function; both would pull in stdio and the locales.
[[gnu::weak]] int __get_nprocs() {
  return 1;
}
[[gnu::weak]] int __get_nprocs_sched() {
  return 1;
}
[[gnu::weak]] int get_nprocs() noexcept {  // std::thread::hardware_concurrency()
  return 1;
}
// The resolver's state of this thread; the agent resolves names with getent.
[[gnu::weak]] thread_local void* __libc_resp = nullptr;
// libsodium selects its implementations in sodium_init(), which is not called. The portable ones are fast
// enough for the short messages between servers.
[[gnu::weak]] int blake2b_compress_ssse3(void* /*state*/, const unsigned char* /*block*/) {
  std::abort();
}
[[gnu::weak]] int blake2b_compress_sse41(void* /*state*/, const unsigned char* /*block*/) {
  std::abort();
}
[[gnu::weak]] int blake2b_compress_avx2(void* /*state*/, const unsigned char* /*block*/) {
  std::abort();
}
[[gnu::weak]] extern const char crypto_stream_chacha20_dolbeau_ssse3_implementation[64] = {};
[[gnu::weak]] extern const char crypto_stream_chacha20_dolbeau_avx2_implementation[64] = {};
[[gnu::weak]] extern const char crypto_onetimeauth_poly1305_sse2_implementation[64] = {};
}
// NOLINTEND(bugprone-reserved-identifier)
