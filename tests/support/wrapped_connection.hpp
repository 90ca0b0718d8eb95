#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/shell_quote.hpp"
#include "ssh/connection.hpp"

namespace remote::test {

// Passes everything on to another connection and counts the bytes sent to commands on the server. It can also
// run them behind another command and pretend to be another server.
class WrappedConnection final : public ssh::Connection {
 public:
  explicit WrappedConnection(ssh::Connection& inner) : inner_(inner), login_(inner.login()) {}

  std::unique_ptr<ssh::Channel> open(const std::string& command, ssh::Sink sink) override {
    return std::make_unique<Counted>(
        inner_.open(before_.empty() ? command : before_ + " sh -c " + shell_quote(command), std::move(sink)),
        sent_);
  }
  std::unique_ptr<ssh::Channel> open_tcp(const std::string& host, int port, ssh::Sink sink) override {
    return inner_.open_tcp(host, port, std::move(sink));
  }
  void pump(std::chrono::milliseconds timeout, std::span<pollfd> also) override {
    inner_.pump(timeout, also);
  }
  std::string peer_address() const override { return inner_.peer_address(); }
  ssh::LoginFacts login() const override { return login_; }
  std::string forward_agent(const std::filesystem::path& socket, const std::set<std::string>& keys) override {
    return inner_.forward_agent(socket, keys);
  }

  // From now on, runs each command through a shell behind this command: "exec setpriv …".
  void run_behind(const std::string& command) { before_ = command; }
  // The result of login() from now on.
  ssh::LoginFacts& told() { return login_; }
  // The bytes written to the stdin of all commands.
  std::uint64_t sent() const { return *sent_; }

 private:
  class Counted final : public ssh::Channel {
   public:
    Counted(std::unique_ptr<ssh::Channel> inner, std::shared_ptr<std::uint64_t> sent)
        : inner_(std::move(inner)), sent_(std::move(sent)) {}
    std::size_t writable() const override { return inner_->writable(); }
    void write(std::string_view data) override {
      *sent_ += data.size();
      inner_->write(data);
    }
    void close_input() override { inner_->close_input(); }
    void pause(bool paused) override { inner_->pause(paused); }
    bool finished() const override { return inner_->finished(); }
    std::optional<ExitStatus> status() const override { return inner_->status(); }

   private:
    std::unique_ptr<ssh::Channel> inner_;
    std::shared_ptr<std::uint64_t> sent_;
  };

  ssh::Connection& inner_;
  ssh::LoginFacts login_;
  std::string before_;
  std::shared_ptr<std::uint64_t> sent_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace remote::test
