#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <remote/network.hpp>

#include "agent/network/talks.hpp"
#include "wire/pairs.hpp"

namespace remote::agent {

// Connects to a server's listener, and checks its token and whether full-size packets get through.
class Attempt final : public Caller {
 public:
  using Done = std::function<void(Reach)>;

  // `max_packet`: the size of the packets; 0: as large as possible.
  Attempt(const std::vector<wire::ListeningServer>& servers, int expected, const IpAddress& address, int port,
          int max_packet, Done done)
      : Caller(address, port, max_packet), servers_(servers), expected_(expected), done_(std::move(done)) {}

  void begin() override;

 private:
  void fail(int error) override;
  void greet(const std::string& text) override;
  void answer(std::string_view data) override;
  void lose(int why) override;
  void end(ReachKind kind);

  const std::vector<wire::ListeningServer>& servers_;
  int expected_;
  Done done_;
  Clock::time_point begun_{};
  Reach reach_;
  std::size_t wanted_ = 0;    // size of the expected answer
  std::size_t received_ = 0;  // so far
};

// An ICMP message that explains why a connection failed.
struct IcmpMessage {
  int type = 0;
  int code = 0;
  std::string from;
};

// Classifies the error of a connection.
ReachKind judge_error(int error, const std::optional<IcmpMessage>& icmp);

}  // namespace remote::agent
