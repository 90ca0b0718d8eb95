#include "ssh/libssh.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace remote::ssh {
namespace {

// Takes ownership of a text that libssh allocated. Empty if the allocation failed.
std::string take_text(char* text) {
  std::string result = text != nullptr ? text : "";
  ssh_string_free_char(text);
  return result;
}

}  // namespace

void initialise_libssh() {
  static std::once_flag once;
  std::call_once(once, [] { ssh_init(); });
}

std::string last_error(ssh_session session, const std::string& otherwise) {
  const char* said = ssh_get_error(session);
  const std::string_view text = said != nullptr ? said : "";
  // libssh leaves the other texts after it has waited for nothing in particular, or for a socket that the
  // peer closed.
  const bool nothing = text.empty() || text == "Connection not closed yet" ||
                       text == "Socket error: Success" || text == "Socket error: disconnected";
  return nothing ? otherwise : std::string(text);
}

bool link_ended(ssh_session session) {
  return ssh_get_fd(session) < 0 || ssh_is_connected(session) == 0 ||
         (ssh_get_status(session) & (SSH_CLOSED | SSH_CLOSED_ERROR)) != 0;
}

std::string fingerprint(ssh_key key) {
  unsigned char* hash = nullptr;
  std::size_t length = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &length) != SSH_OK) {
    return "unknown";
  }
  std::string result = take_text(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, length));
  ssh_clean_pubkey_hash(&hash);
  return result;
}

std::string key_type_name(ssh_key key) {
  if (ssh_key_type(key) == SSH_KEYTYPE_ECDSA) {
    return ssh_pki_key_ecdsa_name(key);
  }
  const char* name = ssh_key_type_to_char(ssh_key_type(key));
  return name != nullptr ? name : "unknown";
}

std::string key_base64(ssh_key key) {
  char* text = nullptr;
  ssh_pki_export_pubkey_base64(key, &text);
  return take_text(text);
}

std::chrono::milliseconds Patience::left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

std::string Patience::text() const {
  return fmt::format("{:.3g} s", std::chrono::duration<double>(time_).count());
}

bool Patience::wait(int fd, short events) const {
  for (;;) {
    cancel_.check();
    std::array<pollfd, 2> fds{{{fd, events, 0}, {cancel_.fd(), POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(left().count()));
    cancel_.check();
    if (ready > 0 && fds[0].revents != 0) {
      return true;
    }
    if ((ready < 0 && errno != EINTR) || over()) {
      return false;
    }
  }
}

void Patience::sleep(std::chrono::milliseconds time) const {
  pollfd slot{cancel_.fd(), POLLIN, 0};
  ::poll(&slot, 1, static_cast<int>(std::min(time, left()).count()));
  cancel_.check();
}

void acknowledge_at_once([[maybe_unused]] int fd) {
#ifdef TCP_QUICKACK
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
#endif
}

short wanted_events(ssh_session session) {
  const bool writing = (ssh_get_poll_flags(session) & SSH_WRITE_PENDING) != 0;
  return static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN);
}

bool wait_for_session(ssh_session session, const Patience& patience) {
  const int fd = ssh_get_fd(session);
  if (fd < 0) {
    return false;
  }
  acknowledge_at_once(fd);
  return patience.wait(fd, wanted_events(session));
}

}  // namespace remote::ssh
