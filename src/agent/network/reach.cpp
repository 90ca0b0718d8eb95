#include <algorithm>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/facts/network.hpp"
#include "agent/network/answers.hpp"
#include "agent/network/attempt.hpp"
#include "agent/network/names.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t attempts_at_once = 64;
constexpr std::size_t tried_addresses = 4;  // for the name, and for the others
constexpr milliseconds closed_check{100};   // the stream is checked at least this often
constexpr std::array packet_sizes{8950, 8900, 4000, 2000, 1480, 1460, 1450, 1440, 1430, 1420,
                                  1400, 1380, 1350, 1300, 1280, 1200, 1000, 800,  576};

bool holds(const std::vector<IpAddress>& addresses, const std::string& text) {
  return std::ranges::any_of(addresses, [&](const IpAddress& each) { return each.text() == text; });
}

// Another server, and the results of the attempts to reach it.
struct OtherServer {
  const wire::ListeningServer& server;
  std::vector<IpAddress> addresses;  // addresses of its name, which are tried
  Pair pair{};
  int open = 0;  // number of open attempts
  bool is_reached = false;
  bool has_tried_all = false;
  std::vector<Reach> lost{};  // attempts whose full-size packets were lost
  int passes = 0;             // the largest size that got through
};

class Reaching {
 public:
  Reaching(const Host& host, const wire::ReachRequest& request, Stream& stream)
      : host_(host), request_(request), stream_(stream) {}

  void run() {
    std::vector<std::string> names;
    for (const wire::ListeningServer& server : request_.servers) {
      names.push_back(server.name);
    }
    auto addresses = resolve_names(host_, names);
    for (std::size_t i = 0; i < names.size(); ++i) {
      begin(servers_.emplace_back(OtherServer{request_.servers[i], std::move(addresses[i])}));
    }
    while ((!waiting_.empty() || talks_.size() > 0) && !stream_.is_closed()) {
      while (!waiting_.empty() && talks_.size() < attempts_at_once) {
        std::unique_ptr<Talk> next = std::move(waiting_.front());
        waiting_.pop_front();
        talks_.add(std::move(next));
      }
      std::vector<pollfd> none;
      talks_.turn(none, closed_check);
    }
  }

 private:
  // First tries all addresses that ranks would use, and the second port.
  void begin(OtherServer& other) {
    other.pair.to = static_cast<std::size_t>(other.server.index);
    for (const IpAddress& address : other.addresses) {
      other.pair.addresses.push_back(address.text());
    }
    if (!other.addresses.empty()) {
      const wire::RouteFacts route = find_route(other.addresses.front());
      other.pair.interface = route.interface.value_or("");
      other.pair.source = route.source;
    }
    if (other.server.index == request_.own) {
      stream_.send(wire::ReachReply{std::move(other.pair)});
      return;
    }
    if (other.addresses.size() > tried_addresses) {
      other.addresses.erase(other.addresses.begin() + tried_addresses, other.addresses.end());
    }
    for (const IpAddress& address : other.addresses) {
      start(other, address, other.server.port);
    }
    const std::string& data = other.server.data_address;
    const auto address = IpAddress::parse(data);
    if (address && !holds(other.addresses, data) && data != "::1" && !data.starts_with("127.")) {
      start(other, *address, other.server.port);
    }
    if (!other.addresses.empty()) {
      start(other, other.addresses.front(), other.server.second_port);
    }
    go_on(other);
  }

  void start(OtherServer& other, const IpAddress& address, int port) {
    ++other.open;
    waiting_.push_back(
        std::make_unique<Attempt>(request_.servers, other.server.index, address, port, 0,
                                  [this, &other](Reach reach) { take(other, std::move(reach)); }));
  }

  void take(OtherServer& other, Reach reach) {
    --other.open;
    if (reach.kind == ReachKind::lost_large) {
      other.lost.push_back(std::move(reach));
      if (other.lost.size() == 1) {
        measure(other);
      }
    } else {
      other.is_reached = other.is_reached || reach.kind == ReachKind::ok;
      other.pair.tries.push_back(std::move(reach));
    }
    go_on(other);
  }

  // Measures which packets get through, if the largest do not.
  void measure(OtherServer& other) {
    const Reach& lost = other.lost.front();
    const auto address = IpAddress::parse(lost.address);
    for (const int size : packet_sizes) {
      if (address && size < lost.packet) {
        ++other.open;
        waiting_.push_back(std::make_unique<Attempt>(request_.servers, other.server.index, *address,
                                                     lost.port, size,
                                                     [this, &other, size](const Reach& reach) {
                                                       --other.open;
                                                       if (reach.kind == ReachKind::ok) {
                                                         other.passes = std::max(other.passes, size);
                                                       }
                                                       go_on(other);
                                                     }));
      }
    }
  }

  // When no attempt is open, tries the other addresses, if none of the name's addresses works.
  void go_on(OtherServer& other) {
    if (other.open > 0) {
      return;
    }
    for (Reach& reach : other.lost) {
      reach.passes = other.passes;
      other.pair.tries.push_back(std::move(reach));
    }
    other.lost.clear();
    if (!other.has_tried_all && !other.is_reached) {
      std::size_t count = 0;
      for (const std::string& text : other.server.addresses) {
        const auto address = IpAddress::parse(text);
        if (address && !holds(other.addresses, text) && text != other.server.data_address &&
            count++ < tried_addresses) {
          start(other, *address, other.server.port);
        }
      }
    }
    other.has_tried_all = true;
    if (other.open == 0) {
      stream_.send(wire::ReachReply{std::move(other.pair)});
    }
  }

  const Host& host_;
  const wire::ReachRequest& request_;
  Stream& stream_;
  std::list<OtherServer> servers_;
  std::list<std::unique_ptr<Talk>> waiting_;
  Talks talks_;
};

}  // namespace

void answer_reach(const Host& host, const wire::ReachRequest& request, Stream& stream) {
  Reaching(host, request, stream).run();
}

}  // namespace remote::agent
