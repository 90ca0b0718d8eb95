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

// A Connection over the control socket of an OpenSSH master, which is already logged in and also serves other
// commands of this user. It has no agent forwarding, and does not report which signal ended a command.
class MuxConnection final : public Connection {
 public:
  // Checks that the master is alive. `self_watching`: the master notices a dead connection by itself (ours
  // do), so a silent one does not have to be checked all the time. Throws Error if no trusted master answers.
  MuxConnection(std::filesystem::path socket, LoginFacts login, std::string peer_address, bool self_watching,
                const Cancel& cancel);
  MuxConnection(const MuxConnection&) = delete;
  MuxConnection& operator=(const MuxConnection&) = delete;

  // Waits until the server has answered. It opens a session for this command ahead of time, which the next
  // open() of the command uses. Throws Unreachable if no answer arrives within the limit, and
  // TooManyChannels.
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
  // ssh does not report which of its key files it used to log in, so this lists all existing ones.
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
  mux::ControlSocket master_;  // used to check whether the master is alive; it is closed when the master ends
  std::string peer_address_;
  LoginFacts login_;
  bool self_watching_;
  Cancel cancel_;
  std::vector<StatePtr> channels_;
  std::vector<StatePtr> spares_;  // a subset of channels_; they were opened ahead and have no handles yet
  std::vector<std::string> expected_;
  bool watchful_ = false;
  std::vector<std::unique_ptr<MuxReverse>> reverse_;
  std::unique_ptr<MuxAgent> agent_;
  UniqueFd incoming_;      // a connection that was forwarded to us and waits for accept_tcp()
  StatePtr sign_of_life_;  // a session opened only to get an answer from the server
  clock::time_point heard_ = clock::now();
  clock::time_point asked_;
  clock::time_point closed_at_;
  bool abandoned_ = false;  // a command was given up before its end
  std::string lost_;        // why the connection is lost; empty while it is up
};

}  // namespace remote::ssh
