#include "agent/stacks/connections.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "agent/host/files.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_table = std::size_t{32} << 20U;

// Removes the port. An IPv4-mapped IPv6 address becomes the IPv4 address.
std::string_view shorten_address(std::string_view text) {
  constexpr std::string_view mapped = "0000000000000000FFFF0000";
  text = text.substr(0, text.find(':'));
  return text.starts_with(mapped) ? text.substr(mapped.size()) : text;
}

bool is_of_this_machine(std::string_view address) {
  return address == "0100007F" || address == "00000000000000000000000001000000";
}

void insert_address(std::set<std::string>& addresses, std::string_view address) {
  if (addresses.size() < wire::max_addresses) {
    addresses.emplace(address);
  }
}

// The fields of a line: 1 local address, 2 remote address, 3 state, 5 TIMER:WHEN, 6 retransmissions, 7 user,
// 8 unanswered probes.
void read_connection(const std::vector<std::string>& words, const std::string& user, wire::WhyReply& reply) {
  if (words.size() < 9 || !words[0].ends_with(':') || words[7] != user ||
      is_of_this_machine(shorten_address(words[1]))) {
    return;
  }
  const bool is_open = words[3] == "01";
  const bool is_opening = words[3] == "02";
  if (is_open || is_opening) {
    insert_address(reply.addresses, shorten_address(words[1]));
  }
  const std::string& again = words[6];
  const bool is_sent_again = words[5].starts_with("01:") && again != "00000000" && again != "00000001";
  const bool is_probed = words[5].starts_with("04:") && parse_number<int>(words[8]).value_or(0) > 1;
  if ((is_open && (is_sent_again || is_probed)) || (is_opening && again != "00000000")) {
    insert_address(reply.silent, shorten_address(words[2]));
  }
}

}  // namespace

void read_connections(const Host& host, wire::WhyReply& reply) {
  const std::string user = text::format("{}", ::geteuid());
  for (const char* name : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    for (const std::string& line : split(read_file(host.system(name), most_table).value_or(""), '\n')) {
      read_connection(split_words(line), user, reply);
    }
  }
}

}  // namespace remote::agent
