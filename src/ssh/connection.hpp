#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <remote/cancel.hpp>
#include <remote/error.hpp>
#include <remote/events.hpp>
#include <remote/exit_status.hpp>

#include "base/subprocess.hpp"

// The interface to SSH for the rest of the program: a connection to one server, on which commands run. The
// real implementations use libssh (session.cpp) and OpenSSH's control socket (mux_connection.cpp). Tests
// replace them with a local shell (tests/support/local_connection.hpp).

namespace remote::ssh {

// The server refuses another channel on this connection (sshd's MaxSessions).
class TooManyChannels : public Error {
 public:
  TooManyChannels()
      : Error(Error("cannot open a channel", "the server allows no further session on this connection",
                    "raise MaxSessions in its sshd_config, or ask for less at once")
                  .because(Cause::refused)) {}
};

// The connection broke or the server cannot be reached, so it is unknown what runs there. Commands that query
// a state must treat this as "unknown", never as "gone".
class Unreachable : public Error {
 public:
  explicit Unreachable(const Error& error) : Error(error.because(Cause::unreachable)) {}
  Unreachable(std::string_view what_failed, std::string_view reason, std::string_view hint = {})
      : Unreachable(Error(what_failed, reason, hint)) {}
};

using Stream = OutputStream;

// Receives output as it arrives, in pieces of any size, on the thread that pumps the connection.
using Sink = std::function<void(Stream, std::string_view)>;

// A command that runs on the server. It must not outlive its Connection, and only the connection's thread may
// use it.
class Channel {
 public:
  virtual ~Channel() = default;

  // The number of bytes that write() can take without waiting, which is the free space in the peer's receive
  // window. 0: full.
  virtual std::size_t writable() const = 0;
  // Passes bytes to the command's stdin. The caller must not exceed writable(). Throws Error if the
  // connection is lost.
  virtual void write(std::string_view data) = 0;
  // Sends EOF to the command's stdin.
  virtual void close_input() = 0;
  // While paused, no output is read from the connection, so the peer's window fills and the command waits.
  virtual void pause(bool paused) = 0;
  // True when both outputs have ended and the command's end is known.
  virtual bool finished() const = 0;
  // The exit status; nullopt if the connection was lost before the server sent it. A TCP connection has none.
  virtual std::optional<ExitStatus> status() const = 0;

  // Leaves the command running for the next caller that opens the same one (Connection::parks), if no data is
  // in transit in either direction; then destroy this object. If it returns false, the command ends with this
  // object as usual.
  virtual bool park() { return false; }
  // Whether it was parked before, so that its command is already running.
  virtual bool is_resumed() const { return false; }

  // For a TCP connection (Connection::open_tcp): whether the server has not yet confirmed or refused it.
  virtual bool opening() const { return false; }
  // The server's reason for refusing to open it; empty if it did not.
  virtual std::string refusal() const { return {}; }
  // Whether the peer will send no more. It may still read.
  virtual bool output_ended() const { return finished(); }
};

// Detects the end of a command even if a background process keeps its output open, for example one that a
// startup file of the login shell has started. sshd reports the exit status immediately, but the end of the
// output only when that process exits. So a second of silence after the exit status is sufficient.
class OutputEnd {
 public:
  // Call this when output has arrived.
  void heard() { heard_ = Clock::now(); }
  // The time of the last output or, before that, of the construction.
  std::chrono::steady_clock::time_point last() const { return heard_; }
  // How long to wait if no output arrives; nullopt while the command is running, 0 when it is over.
  std::optional<std::chrono::milliseconds> left(
      const Channel& channel, std::chrono::milliseconds quiet_time = std::chrono::milliseconds(1000));
  bool over(const Channel& channel) {
    return channel.finished() || left(channel) == std::chrono::milliseconds(0);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point heard_ = Clock::now();  // or of the command's end, once that is known
  bool ended_ = false;
};

struct ExecRequest {
  std::string what = "command";          // for the log: "state of 3 jobs"
  std::string command{};                 // for the login shell; it should not need quotes
  std::string input{};                   // stdin, followed by end of file
  Sink sink{};                           // gets the output; if empty, the result contains it
  std::chrono::milliseconds timeout{0};  // after this time, exec() throws Error; 0: never
  // Returns true once the output is complete. Then the command counts as ended when it exits, even if a
  // background process from a startup file keeps the output open. Otherwise, exec() waits for a second of
  // silence after the exit.
  std::function<bool()> complete{};
  std::size_t max_output = std::size_t{16}
                           << 20U;  // more output, even to a sink, is an Error, in case a server goes mad
};

// How a connection logged in, for another server that has to log in to this one too.
struct LoginFacts {
  std::string user;
  std::string host;
  int port = 22;
  std::string host_key;        // "ssh-ed25519 AAAA…": the server's key, after it was checked
  std::set<std::string> keys;  // accepted public keys, in the wire format; empty if a password was used
  std::vector<std::filesystem::path> key_files;  // the private key files of those that were read from a file
  std::string agent;   // the socket of the agent that may hold the others; empty: none
  std::string server;  // its name in configs.yaml
};

// Folders on a server, absolute or relative to the home directory ("~/x"); "": none.
struct AgentFolders {
  std::string chosen;  // chosen by the user: no other folder is tried
  std::string jobs;    // the folder of the project's jobs, tried late
};

// An authenticated connection to one server. Owned and used by one thread, because libssh does not allow
// sharing a session. Every function that communicates with the server throws Error, without a server name,
// which the fan-out adds.
class Connection {
 public:
  virtual ~Connection() = default;

  // Starts a command. pump() passes its output to `sink`. Throws TooManyChannels if the server refuses
  // another channel (sshd's MaxSessions); then use another connection.
  virtual std::unique_ptr<Channel> open(const std::string& command, Sink sink) = 0;

  // A hint, to be given for each command: this command will be opened after the next one, so its round trips
  // can overlap with that one. It is started ahead, and possibly never used, so it must wait for its input.
  // Empty: the next command is unknown.
  virtual void expect(const std::string& command) { static_cast<void>(command); }

  // Whether its channels can be parked (Channel::park).
  virtual bool parks() const { return false; }

  // Serves all channels once: sends queued data, and passes received data to the sinks. Waits up to `timeout`
  // for the connection or one of `also` to become ready, and fills in their revents. Returns immediately if
  // anything was served. Throws Error if the connection is lost.
  virtual void pump(std::chrono::milliseconds timeout, std::span<pollfd> also = {}) = 0;

  // Runs one command to its end. Throws Error on timeout or if the connection is lost, and Interrupted on
  // cancel.
  ExecResult exec(const ExecRequest& request, const Cancel& cancel = Cancel());

  // While `on`, a connection that is silent for seconds counts as lost. Use it if commands answer immediately
  // and others are waiting.
  virtual void be_watchful(bool on) { static_cast<void>(on); }

  // Whether another caller can continue with this connection: it is up, and every opened command has ended.
  // Reads what has arrived, but does not wait.
  virtual bool idle() noexcept { return false; }

  // How long a command may take until the first line of its answer. sshd may work even if a login shell or
  // the storage of the home directory hangs.
  virtual std::chrono::milliseconds answer_time() const { return answer_time_; }
  void set_answer_time(std::chrono::milliseconds time) { answer_time_ = time; }

  // The folders of the server where the agent may be installed.
  virtual const AgentFolders& agent_folders() const { return agent_folders_; }
  void set_agent_folders(AgentFolders folders) { agent_folders_ = std::move(folders); }

  // From now on, open() throws Interrupted if this is cancelled while it waits for the server.
  virtual void heed(const Cancel& cancel) { static_cast<void>(cancel); }

  // Explains a silence, if packets are being lost; "" otherwise, or if unknown. May take a second.
  virtual std::string explain_silence() { return {}; }

  // The server's name in configs.yaml, for the log.
  virtual std::string_view server() const { return {}; }

  // The numeric address that this connection reached, used as MASTER_ADDR if only the laptop can resolve the
  // server's name.
  virtual std::string peer_address() const = 0;

  // How this connection logged in. Unknown fields are empty.
  virtual LoginFacts login() const { return {}; }

  // Lets commands that are opened from now on use the SSH agent at this local socket (agent forwarding), but
  // only to list these keys (in the wire format) and to sign with them. While they run, root on the server
  // can do the same. An empty path, the initial state, disables it. Returns the value that these commands
  // must set as SSH_AUTH_SOCK, and must remove at their end; empty if the server does both.
  virtual std::string forward_agent(const std::filesystem::path& socket, const std::set<std::string>& keys) {
    static_cast<void>(socket);
    static_cast<void>(keys);
    return {};
  }

  // A TCP connection that the server opens to this host and port, which it resolves. Does not wait for the
  // answer: see Channel::opening() and refusal(). close_input() forwards the end of one direction. Throws
  // Error if the connection is lost, or if this kind of connection does not support it.
  virtual std::unique_ptr<Channel> open_tcp(const std::string& host, int port, Sink sink);

  // Asks the server to listen on this port of its loopback address until the connection ends, and waits for
  // the answer. Afterwards, the connection must not be used for anything else. Throws Error if the server
  // refuses.
  virtual void listen_tcp(int port);
  // The port of listen_tcp() on which the next connection is waiting; 0: none. Call it after each pump().
  virtual int incoming() { return 0; }
  // Accepts that connection. Call it only if incoming() has returned a port.
  virtual std::unique_ptr<Channel> accept_tcp(Sink sink);

 private:
  std::chrono::milliseconds answer_time_ = std::chrono::seconds(10);
  AgentFolders agent_folders_;
};

// Makes a connection watchful during this object's lifetime, if `wanted`.
class Watchful {
 public:
  Watchful(Connection& connection, bool wanted) : connection_(wanted ? &connection : nullptr) { set(true); }
  ~Watchful() { set(false); }
  Watchful(const Watchful&) = delete;
  Watchful& operator=(const Watchful&) = delete;

 private:
  void set(bool on) const {
    if (connection_ != nullptr) {
      connection_->be_watchful(on);
    }
  }
  Connection* connection_;
};

}  // namespace remote::ssh
