// Debian's libssh.a is built with GSSAPI (Kerberos), but Debian has no static archive of GSSAPI. The static
// program uses these functions instead of libgssapi_krb5. Each one loads the machine's own library on its
// first call, and returns GSS_S_UNAVAILABLE if there is none, so the program also starts on machines without
// Kerberos. Names, numbers of arguments and object identifiers: RFC 2744 (GSS-API v2, C bindings).

#include <cstdint>

#include <dlfcn.h>

namespace {

struct Oid {  // gss_OID_desc
  std::uint32_t length;
  const void* elements;
};

// Appendix A of RFC 2744: 1.2.840.113554.1.2.1.1 and 1.2.840.113554.1.2.1.4.
constexpr unsigned char user_name_bytes[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x01, 0x01};
constexpr unsigned char host_service_bytes[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x01, 0x04};
constexpr Oid user_name{sizeof user_name_bytes, user_name_bytes};
constexpr Oid host_service{sizeof host_service_bytes, host_service_bytes};

constexpr std::uint32_t unavailable = 16U << 16U;  // GSS_S_UNAVAILABLE

// A function of the machine's library; null if the library lacks it. The library stays loaded until exit.
void* find(const char* name) {
  static void* const library = ::dlopen("libgssapi_krb5.so.2", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : ::dlsym(library, name);
}

template <class... Arguments>
std::uint32_t forward(const char* name, std::uint32_t* minor, Arguments... arguments) {
  using Function = std::uint32_t (*)(std::uint32_t*, Arguments...);
  const auto function = reinterpret_cast<Function>(find(name));
  if (function == nullptr) {
    if (minor != nullptr) {
      *minor = 0;
    }
    return unavailable;
  }
  return function(minor, arguments...);
}

}  // namespace

// The functions that libssh 0.10 and 0.11 call. P stands for any pointer; the real types are in a header that
// is not available here.
using P = void*;
using U = std::uint32_t;
using Minor = U*;

extern "C" {

extern const Oid* GSS_C_NT_USER_NAME;
extern const Oid* GSS_C_NT_HOSTBASED_SERVICE;
const Oid* GSS_C_NT_USER_NAME = &user_name;
const Oid* GSS_C_NT_HOSTBASED_SERVICE = &host_service;

U gss_accept_sec_context(Minor m, P a, P b, P c, P d, P e, P f, P g, P h, P i, P j) {
  return forward("gss_accept_sec_context", m, a, b, c, d, e, f, g, h, i, j);
}
U gss_acquire_cred(Minor m, P a, U b, P c, int d, P e, P f, P g) {
  return forward("gss_acquire_cred", m, a, b, c, d, e, f, g);
}
U gss_add_oid_set_member(Minor m, P a, P b) {
  return forward("gss_add_oid_set_member", m, a, b);
}
U gss_create_empty_oid_set(Minor m, P a) {
  return forward("gss_create_empty_oid_set", m, a);
}
U gss_display_name(Minor m, P a, P b, P c) {
  return forward("gss_display_name", m, a, b, c);
}
U gss_display_status(Minor m, U a, int b, P c, P d, P e) {
  return forward("gss_display_status", m, a, b, c, d, e);
}
U gss_get_mic(Minor m, P a, U b, P c, P d) {
  return forward("gss_get_mic", m, a, b, c, d);
}
U gss_import_name(Minor m, P a, P b, P c) {
  return forward("gss_import_name", m, a, b, c);
}
U gss_indicate_mechs(Minor m, P a) {
  return forward("gss_indicate_mechs", m, a);
}
U gss_init_sec_context(Minor m, P a, P b, P c, P d, U e, U f, P g, P h, P i, P j, P k, P l) {
  return forward("gss_init_sec_context", m, a, b, c, d, e, f, g, h, i, j, k, l);
}
U gss_inquire_cred(Minor m, P a, P b, P c, P d, P e) {
  return forward("gss_inquire_cred", m, a, b, c, d, e);
}
U gss_inquire_cred_by_mech(Minor m, P a, P b, P c, P d, P e, P f) {
  return forward("gss_inquire_cred_by_mech", m, a, b, c, d, e, f);
}
U gss_release_buffer(Minor m, P a) {
  return forward("gss_release_buffer", m, a);
}
U gss_release_cred(Minor m, P a) {
  return forward("gss_release_cred", m, a);
}
U gss_release_name(Minor m, P a) {
  return forward("gss_release_name", m, a);
}
U gss_release_oid_set(Minor m, P a) {
  return forward("gss_release_oid_set", m, a);
}
U gss_test_oid_set_member(Minor m, P a, P b, P c) {
  return forward("gss_test_oid_set_member", m, a, b, c);
}
U gss_verify_mic(Minor m, P a, P b, P c, P d) {
  return forward("gss_verify_mic", m, a, b, c, d);
}

}  // extern "C"
