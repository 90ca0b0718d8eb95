#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ssh/agent_relay.hpp"
#include "ssh/connection.hpp"
#include "ssh/libssh.hpp"
#include "ssh/path.hpp"
#include "ssh/session_channel.hpp"

namespace remote::ssh {

// A Connection over an authenticated libssh session. Session and socket are non-blocking. Only pump() and
// open() wait, with poll(2).
class Session final : public Connection {
 public:
  // `keep` is kept alive as long as the connection: the connection to a jump host, or a ProxyCommand.
  Session(SessionPtr session, LoginFacts login, std::string peer_address, std::shared_ptr<void> keep);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::unique_ptr<Channel> open(const std::string& command, Sink sink) override;
  void expect(const std::string& command) override;
  bool parks() const override { return true; }
  std::unique_ptr<Channel> open_tcp(const std::string& host, int port, Sink sink) override;
  void listen_tcp(int port) override;
  int incoming() override;
  std::unique_ptr<Channel> accept_tcp(Sink sink) override;
  void pump(std::chrono::milliseconds timeout, std::span<pollfd> also = {}) override;
  bool idle() noexcept override;
  std::string_view server() const override { return login_.server; }
  std::string peer_address() const override { return peer_address_; }
  LoginFacts login() const override { return login_; }
  std::string forward_agent(const std::filesystem::path& socket, const std::set<std::string>& keys) override;

  // How long a silence may last before a sign of life is requested, and how long the answer may then take
  // until the connection counts as lost. Their sum is under 30 s.
  void set_keepalive(std::chrono::milliseconds ask_after, std::chrono::milliseconds dead_after);
  void be_watchful(bool on) override;
  void heed(const Cancel& cancel) override { cancel_ = cancel; }
  std::string explain_silence() override;

 private:
  using clock = std::chrono::steady_clock;

  using Begin = std::function<std::shared_ptr<ChannelState>()>;

  std::unique_ptr<Channel> open_with(const Begin& begin);
  std::shared_ptr<ChannelState> begin(const std::string& command, const Sink& sink);
  bool drop_spares();
  void wait_until_open(ChannelState& state);
  void wait_for(const std::function<bool()>& answered);
  void drop_released();
  bool serve_channels();
  bool deliver_rest();
  bool take_input();
  std::string why_closed() const;
  bool overfull() const;
  clock::time_point next_check() const;
  void check_link();
  bool note_traffic();
  void ask_for_a_sign();
  void flush_before_end();
  [[noreturn]] void throw_lost() const;

  std::shared_ptr<void> keep_;    // destroyed after the session
  ssh_counter_struct traffic_{};  // libssh counts the connection's bytes here; destroyed after the session
  std::uint64_t traffic_seen_ = 0;
  std::unique_ptr<AgentRelay> relay_;  // created on first use; destroyed after the session
  SessionPtr session_;
  ssh_event event_ = nullptr;
  std::string peer_address_;
  LoginFacts login_;
  std::vector<std::shared_ptr<ChannelState>> channels_;
  std::vector<std::string> expected_;  // commands to open spare channels for
  std::set<int> listening_;            // ports of the server whose connections are forwarded to this machine
  ChannelPtr incoming_;                // a connection that was forwarded to us and waits for accept_tcp()
  std::vector<pollfd> fds_;
  struct Patience {
    std::chrono::milliseconds ask_after;
    std::chrono::milliseconds dead_after;
  };
  Patience usual_{std::chrono::milliseconds(10000), std::chrono::milliseconds(15000)};
  Patience patience_ = usual_;
  bool watchful_ = false;
  clock::time_point heard_ = clock::now();
  std::optional<clock::time_point> asked_;
  PathFacts path_when_asked_;
  bool loses_packets_ = false;
  int hurried_rounds_ =
      16;  // for the first pumps, those around the first command, which ask for quick acknowledgments
  clock::time_point closed_at_;  // the time when the last channel was closed
  bool abandoned_ = false;       // a command was given up before its end
  Cancel cancel_;                // from the call that is using the connection
  std::string lost_;             // why the connection is lost; empty while it is up
};

}  // namespace remote::ssh
