#include "ssh/pool.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"

namespace remote::ssh {
namespace {

using Clock = std::chrono::steady_clock;

// An idle connection does not answer the server's keepalive requests, and its loss is not always noticed.
// After this time, a new connection is safer.
constexpr std::chrono::seconds longest_idle{60};

}  // namespace

// The connections that are currently unused, by server.
class Pool::Idle {
 public:
  // nullptr if there is no working one.
  std::unique_ptr<Connection> take(const std::string& server) {
    for (;;) {
      Kept last;
      {
        const std::lock_guard lock(mutex_);
        auto& kept = by_server_[server];
        if (kept.empty()) {
          return nullptr;
        }
        last = std::move(kept.back());
        kept.pop_back();
      }
      if (Clock::now() - last.since < longest_idle && last.connection->idle()) {
        return std::move(last.connection);
      }
    }
  }

  void give_back(const std::string& server, std::unique_ptr<Connection> connection) {
    const bool usable = connection->idle();
    std::vector<Kept>
        dropped;  // destroyed after the lock is released, because closing a connection may take a moment
    const std::lock_guard lock(mutex_);
    auto& kept = by_server_[server];
    if (usable) {
      kept.push_back({std::move(connection), Clock::now()});
    } else {
      dropped.swap(kept);  // the cause of this failure has probably broken the others too
    }
  }

 private:
  struct Kept {
    std::unique_ptr<Connection> connection;
    Clock::time_point since;
  };
  std::mutex mutex_;
  std::map<std::string, std::vector<Kept>> by_server_;
};

class Pool::Lease final : public Connection {
 public:
  Lease(std::shared_ptr<Idle> home, std::string server, std::unique_ptr<Connection> connection,
        const Cancel& cancel)
      : home_(std::move(home)), server_(std::move(server)), connection_(std::move(connection)) {
    connection_->heed(cancel);  // the next user has its own
  }
  ~Lease() override { home_->give_back(server_, std::move(connection_)); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::unique_ptr<Channel> open(const std::string& command, Sink sink) override {
    return connection_->open(command, std::move(sink));
  }
  std::unique_ptr<Channel> open_tcp(const std::string& host, int port, Sink sink) override {
    return connection_->open_tcp(host, port, std::move(sink));
  }
  void listen_tcp(int port) override { connection_->listen_tcp(port); }
  int incoming() override { return connection_->incoming(); }
  std::unique_ptr<Channel> accept_tcp(Sink sink) override { return connection_->accept_tcp(std::move(sink)); }
  void expect(const std::string& command) override { connection_->expect(command); }
  bool parks() const override { return connection_->parks(); }
  void pump(std::chrono::milliseconds timeout, std::span<pollfd> also) override {
    connection_->pump(timeout, also);
  }
  void be_watchful(bool on) override { connection_->be_watchful(on); }
  std::string explain_silence() override { return connection_->explain_silence(); }
  bool idle() noexcept override { return connection_->idle(); }
  const AgentFolders& agent_folders() const override { return connection_->agent_folders(); }
  std::chrono::milliseconds answer_time() const override { return connection_->answer_time(); }
  std::string_view server() const override { return server_; }
  std::string peer_address() const override { return connection_->peer_address(); }
  LoginFacts login() const override { return connection_->login(); }
  std::string forward_agent(const std::filesystem::path& socket, const std::set<std::string>& keys) override {
    return connection_->forward_agent(socket, keys);
  }

 private:
  std::shared_ptr<Idle> home_;
  std::string server_;
  std::unique_ptr<Connection> connection_;
};

Pool::Pool(std::unique_ptr<Connector> maker) : maker_(std::move(maker)), idle_(std::make_shared<Idle>()) {}

std::unique_ptr<Connection> Pool::connect(const config::Server& server, const Cancel& cancel,
                                          ConnectLimit limit) {
  cancel.check();
  std::unique_ptr<Connection> connection = idle_->take(server.name);
  if (connection) {
    log_debug(server.name, "taking the open connection");
  } else {
    connection = maker_->connect(server, cancel, limit);
  }
  return std::make_unique<Lease>(idle_, server.name, std::move(connection), cancel);
}

std::unique_ptr<Connection> Pool::connect_with_key(const config::Server& server,
                                                   const std::filesystem::path& key, const Cancel& cancel) {
  return maker_->connect_with_key(server, key, cancel);
}

}  // namespace remote::ssh
