#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

// IP addresses, and the kernel's routes to them (rtnetlink(7)).

namespace remote::agent {

class IpAddress {
 public:
  // "10.0.0.1", "fd00::2" or "fe80::1%eth0"; nullopt for anything else.
  static std::optional<IpAddress> parse(std::string_view text);

  int family() const { return family_; }
  const unsigned char* bytes() const { return bytes_.data(); }
  unsigned size() const { return family_ == AF_INET ? 4 : 16; }
  const std::string& text() const { return text_; }
  // Whether it has a zone, that is, the interface of a link-local address: "%eth0", "%2".
  bool has_zone() const { return text_.find('%') != std::string::npos; }
  // The index and name of the interface in the zone; 0 and "" if there is no zone or no such interface.
  unsigned index() const { return index_; }
  std::string interface() const;
  // Compares addresses, ignoring zones.
  bool is_same(const IpAddress& other) const;

 private:
  int family_ = AF_INET;
  std::array<unsigned char, 16> bytes_{};
  std::string text_;
  unsigned index_ = 0;
};

// Formats 4 bytes (AF_INET) or 16 bytes (AF_INET6) in network order, as inet_ntop(3) does (RFC 5952). Returns
// "" if the number of bytes is wrong.
std::string format_address(int family, std::string_view bytes);

struct KernelRoute {
  bool is_local = false;  // the address belongs to this machine
  std::string interface;
  std::string source;  // source address of packets on this route; "": unknown
};

// nullopt: no route, or no answer from the kernel.
std::optional<KernelRoute> ask_kernel(const IpAddress& address);

struct InterfaceAddress {
  std::string interface;
  std::string address;
  bool is_global = false;  // its scope is neither a link nor this machine only
};

// All addresses of this machine; empty if the kernel does not answer.
std::vector<InterfaceAddress> list_addresses();

}  // namespace remote::agent
