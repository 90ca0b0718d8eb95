#include "agent/facts/kernel_route.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include "agent/host/descriptor.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

struct RouteQuery {
  nlmsghdr header;
  rtmsg route;
  std::array<unsigned char, 64> attributes;
};

struct AddressQuery {
  nlmsghdr header;
  ifaddrmsg address;
};

void add_attribute(RouteQuery& query, unsigned short type, const void* data, unsigned size) {
  const unsigned at = query.header.nlmsg_len - offsetof(RouteQuery, attributes);
  const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(size)), type};
  std::memcpy(query.attributes.data() + at, &attribute, sizeof attribute);
  std::memcpy(query.attributes.data() + at + RTA_LENGTH(0), data, size);
  query.header.nlmsg_len += RTA_ALIGN(RTA_LENGTH(size));
}

RouteQuery make_query(const IpAddress& address) {
  RouteQuery query{};
  query.header.nlmsg_len = offsetof(RouteQuery, attributes);
  query.header.nlmsg_type = RTM_GETROUTE;
  query.header.nlmsg_flags = NLM_F_REQUEST;
  query.header.nlmsg_seq = 1;
  query.route.rtm_family = static_cast<unsigned char>(address.family());
  query.route.rtm_dst_len = static_cast<unsigned char>(address.size() * 8);
  add_attribute(query, RTA_DST, address.bytes(), address.size());
  if (const unsigned index = address.index(); index != 0) {
    add_attribute(query, RTA_OIF, &index, sizeof index);
  }
  return query;
}

// Sends a query. Returns an empty descriptor on failure.
Descriptor send_query(const nlmsghdr& header) {
  Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const timeval limit{2, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::send(socket.get(), &header, header.nlmsg_len, 0) != static_cast<ssize_t>(header.nlmsg_len)) {
    socket.reset();
  }
  return socket;
}

// Returns "" on failure. A dump has several parts.
std::string receive_part(const Descriptor& socket) {
  std::string part(65536, '\0');
  const ssize_t size = ::recv(socket.get(), part.data(), part.size(), 0);
  part.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return part;
}

template <typename Struct>
std::optional<Struct> read_struct(std::string_view bytes) {
  if (bytes.size() < sizeof(Struct)) {
    return std::nullopt;
  }
  Struct read;
  std::memcpy(&read, bytes.data(), sizeof read);
  return read;
}

bool ask_interface(unsigned long question, ifreq& request) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket && ::ioctl(socket.get(), question, &request) == 0;
}

// "" if there is none.
std::string name_interface(unsigned index) {
  ifreq request{};
  request.ifr_ifindex = static_cast<int>(index);
  return ask_interface(SIOCGIFNAME, request) ? std::string(request.ifr_name) : "";
}

// 0 if there is none.
unsigned find_interface_index(const std::string& name) {
  ifreq request{};
  if (name.size() >= sizeof request.ifr_name) {
    return 0;
  }
  name.copy(request.ifr_name, name.size());
  return ask_interface(SIOCGIFINDEX, request) ? static_cast<unsigned>(request.ifr_ifindex) : 0;
}

void align(std::string_view& bytes, std::size_t size) {
  bytes.remove_prefix(std::min<std::size_t>(RTA_ALIGN(size), bytes.size()));
}

// Calls take(type, data) for each attribute.
template <typename Take>
void read_attributes(std::string_view bytes, const Take& take) {
  while (const auto attribute = read_struct<rtattr>(bytes)) {
    if (attribute->rta_len < sizeof(rtattr) || attribute->rta_len > bytes.size()) {
      break;
    }
    take(attribute->rta_type, bytes.substr(0, attribute->rta_len).substr(RTA_LENGTH(0)));
    align(bytes, attribute->rta_len);
  }
}

std::optional<KernelRoute> read_answer(std::string_view answer) {
  const auto header = read_struct<nlmsghdr>(answer);
  if (!header || header->nlmsg_type != RTM_NEWROUTE || header->nlmsg_len > answer.size() ||
      header->nlmsg_len < NLMSG_LENGTH(sizeof(rtmsg))) {
    return std::nullopt;
  }
  answer = answer.substr(0, header->nlmsg_len).substr(NLMSG_HDRLEN);
  const auto message = read_struct<rtmsg>(answer);
  if (!message) {
    return std::nullopt;
  }
  KernelRoute route;
  route.is_local = message->rtm_type == RTN_LOCAL;
  align(answer, sizeof(rtmsg));
  read_attributes(answer, [&](unsigned short type, std::string_view data) {
    if (type == RTA_OIF) {
      route.interface = name_interface(read_struct<unsigned>(data).value_or(0));
    } else if (type == RTA_PREFSRC) {
      route.source = format_address(message->rtm_family, data);
    }
  });
  return route;
}

std::optional<InterfaceAddress> read_address(std::string_view bytes) {
  const auto message = read_struct<ifaddrmsg>(bytes);
  if (!message || (message->ifa_family != AF_INET && message->ifa_family != AF_INET6)) {
    return std::nullopt;
  }
  InterfaceAddress found{name_interface(message->ifa_index), "", message->ifa_scope == RT_SCOPE_UNIVERSE};
  align(bytes, sizeof(ifaddrmsg));
  read_attributes(bytes, [&](unsigned short type, std::string_view data) {
    // On point-to-point links, IFA_ADDRESS is the peer's address, so IFA_LOCAL has priority.
    if (type == IFA_LOCAL || (type == IFA_ADDRESS && found.address.empty())) {
      found.address = format_address(message->ifa_family, data);
    }
  });
  return found.interface.empty() || found.address.empty() ? std::nullopt : std::optional(found);
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::size_t percent = text.find('%');
  const std::string plain(text.substr(0, percent));
  IpAddress address;
  address.text_ = text;
  address.family_ = plain.find(':') == std::string::npos ? AF_INET : AF_INET6;
  if (text.size() > 100 || ::inet_pton(address.family_, plain.c_str(), address.bytes_.data()) != 1) {
    return std::nullopt;
  }
  if (percent != std::string_view::npos) {
    const std::string zone(text.substr(percent + 1));
    if (address.family_ == AF_INET || zone.empty()) {
      return std::nullopt;
    }
    address.index_ = find_interface_index(zone);
    if (address.index_ == 0) {
      const unsigned number = parse_number<unsigned>(zone).value_or(0);
      address.index_ = name_interface(number).empty() ? 0 : number;
    }
  }
  return address;
}

std::string format_address(int family, std::string_view bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  if (family == AF_INET && bytes.size() == 4) {
    return text::format("{}.{}.{}.{}", byte(0), byte(1), byte(2), byte(3));
  }
  if (family != AF_INET6 || bytes.size() != 16) {
    return "";
  }
  std::array<unsigned, 8> groups{};
  std::size_t zeros_begin = groups.size();  // the longest run of two or more zeros becomes "::"
  std::size_t zeros = 1;
  std::size_t run = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i] = byte(2 * i) * 256U + byte(2 * i + 1);
    run = groups[i] == 0 ? run + 1 : 0;
    if (run > zeros) {
      zeros = run;
      zeros_begin = i + 1 - run;
    }
  }
  // An embedded IPv4 address is written in dotted form.
  const bool has_ipv4 = zeros_begin == 0 && (zeros == 6 || (zeros == 5 && groups[5] == 0xffff));
  std::string result;
  for (std::size_t i = 0; i < (has_ipv4 ? 6 : groups.size());) {
    if (i == zeros_begin) {
      result += "::";
      i += zeros;
      continue;
    }
    result += text::format("{}{:x}", result.empty() || result.ends_with(':') ? "" : ":", groups[i++]);
  }
  if (has_ipv4) {
    result += (result.ends_with(':') ? "" : ":") + format_address(AF_INET, bytes.substr(12));
  }
  return result;
}

std::string IpAddress::interface() const {
  return index_ == 0 ? "" : name_interface(index_);
}

bool IpAddress::is_same(const IpAddress& other) const {
  return family_ == other.family_ && bytes_ == other.bytes_;
}

std::optional<KernelRoute> ask_kernel(const IpAddress& address) {
  const RouteQuery query = make_query(address);
  return read_answer(receive_part(send_query(query.header)));
}

std::vector<InterfaceAddress> list_addresses() {
  AddressQuery query{};
  query.header.nlmsg_len = sizeof query;
  query.header.nlmsg_type = RTM_GETADDR;
  query.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  query.header.nlmsg_seq = 1;
  const Descriptor socket = send_query(query.header);
  std::vector<InterfaceAddress> all;
  while (true) {
    const std::string part = receive_part(socket);
    std::string_view rest = part;
    while (const auto header = read_struct<nlmsghdr>(rest)) {
      if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR ||
          header->nlmsg_len < NLMSG_HDRLEN || header->nlmsg_len > rest.size()) {
        return all;
      }
      if (header->nlmsg_type == RTM_NEWADDR) {
        if (auto found = read_address(rest.substr(0, header->nlmsg_len).substr(NLMSG_HDRLEN))) {
          all.push_back(std::move(*found));
        }
      }
      align(rest, header->nlmsg_len);
    }
    if (part.empty()) {
      return all;
    }
  }
}

}  // namespace remote::agent
