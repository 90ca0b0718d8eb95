#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/connection.hpp"
#include "ssh/mux_agent.hpp"
#include "ssh/mux_channel.hpp"
#include "ssh/mux_reverse.hpp"

namespace remote::ssh {

// A Connection over the control socket of an OpenSSH master, which has logged in already. The master serves
// other commands of this user too. It has no agent forwarding, and does not say which signal ended a command.
class MuxConnection final : public Connection {
 public:
  // Asks the master whether it lives. `self_watching`: it notices a dead link by itself (ours do), so that a
  // silent one need not be tried all the time. Throws Error when no master answers that may be trusted.
  MuxConnection(std::filesystem::path socket, LoginFacts login, std::string peer_address, bool self_watching,
                const Cancel& cancel);
  MuxConnection(const MuxConnection&) = delete;
  MuxConnection& operator=(const MuxConnection&) = delete;

  // Waits until the server has answered: opens a session for this command ahead, which is used by the next
  // open() of it. Throws Unreachable when no answer comes within the limit, and TooManyChannels.
  void prove(const std::string& command, std::chrono::milliseconds limit);

  std::unique_ptr<Channel> open(const std::string& command, Sink sink) override;
  std::unique_ptr<Channel> open_tcp(const std::string& host, int port, Sink sink) override;
  void listen_tcp(int port) override;
  int incoming() override;
  std::unique_ptr<Channel> accept_tcp(Sink sink) override;
  std::string forward_agent(const std::filesystem::path& socket, const std::set<std::string>& keys) override;
  void expect(const std::string& command) override;
  void pump(std::chrono::milliseconds timeout, std::span<pollfd> also = {}) override;
  bool idle() noexcept override;
  std::string_view server() const override { return login_.server; }
  std::string peer_address() const override { return peer_address_; }
  // ssh does not tell with which of its key files it has logged in: all that are there are named.
  LoginFacts login() const override;
  void be_watchful(bool on) override;
  void heed(const Cancel& cancel) override { cancel_ = cancel; }

 private:
  using clock = std::chrono::steady_clock;
  using StatePtr = std::shared_ptr<MuxState>;

  StatePtr begin(const std::string& command, const Sink& sink);
  std::unique_ptr<Channel> open_with(const std::function<StatePtr()>& begin);
  StatePtr add(const std::function<StatePtr()>& make);
  void wait_until_open(MuxState& state, std::chrono::milliseconds limit);
  bool drop_spares();
  void drop_released();
  std::ptrdiff_t add_to(std::vector<pollfd>& fds) const;
  bool serve_channels();
  void judge_ends();
  bool master_lives();
  std::optional<clock::time_point> next_check() const;
  void check_link();
  void lose(std::string why);
  [[noreturn]] void throw_lost() const;

  std::filesystem::path path_;
  mux::ControlSocket master_;  // asks whether it lives; its end is the master's
  std::string peer_address_;
  LoginFacts login_;
  bool self_watching_;
  Cancel cancel_;
  std::vector<StatePtr> channels_;
  std::vector<StatePtr> spares_;  // of channels_; opened ahead, nobody has a handle of them
  std::vector<std::string> expected_;
  bool watchful_ = false;
  std::vector<std::unique_ptr<MuxReverse>> reverse_;
  std::unique_ptr<MuxAgent> agent_;
  UniqueFd incoming_;      // a connection that came, and waits for accept_tcp()
  StatePtr sign_of_life_;  // a session that is opened for the server's answer alone
  clock::time_point heard_ = clock::now();
  clock::time_point asked_;
  clock::time_point closed_at_;
  bool abandoned_ = false;  // a command was given up before its end
  std::string lost_;        // why the link is gone; empty while it is there
};

}  // namespace remote::ssh
