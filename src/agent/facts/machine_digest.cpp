#include "agent/facts/machine_digest.hpp"

#include <array>
#include <span>
#include <string_view>

#include <sodium.h>

#include "agent/host/files.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t digest_bytes = 8;

// The lowest address of a network card; "" if there is none, as in a container.
std::string read_card_address(const Host& host) {
  const Path folder = host.system("/sys/class/net");
  std::string lowest;
  for (const std::string& interface : list_names(folder)) {
    const std::string address = has_entry(folder / interface / "device")
                                    ? std::string(read_first_line(folder / interface / "address"))
                                    : "";
    if (!address.empty() && (lowest.empty() || address < lowest)) {
      lowest = address;
    }
  }
  return lowest;
}

std::string read_machine_id(const Host& host) {
  std::string id(trim(read_file(host.system("/etc/machine-id"), 4096).value_or("")));
  if (id.empty()) {
    id = trim(read_file(host.system("/var/lib/dbus/machine-id"), 4096).value_or(""));
  }
  return id;
}

std::string make_digest(std::string_view text) {
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  ::crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size(), nullptr, 0);
  return to_hex(std::span(hash).first(digest_bytes));
}

}  // namespace

std::string read_machine_digest(const Host& host) {
  const std::string id = read_machine_id(host);
  // Machines created from one image can have the same machine id.
  const std::string name = read_first_line(host.system("/proc/sys/kernel/hostname"));
  const std::string address = read_card_address(host);
  if (id.empty() && name.empty() && address.empty()) {
    return "0";
  }
  return make_digest(text::format("remote lease {} {} {}", id, name, address));
}

std::string read_image_digest(const Host& host) {
  const std::string id = read_machine_id(host);
  return id.empty() || read_card_address(host).empty() ? "" : make_digest("remote image " + id);
}

}  // namespace remote::agent
