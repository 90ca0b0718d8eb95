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

// What the rest of the program knows of SSH: a connection to one server on which commands run. The real ones
// are libssh's (session.cpp) and OpenSSH's control socket (mux_connection.cpp); tests put a local shell in
// their place (tests/support/local_connection.hpp).

namespace remote::ssh {

// The server refuses a further channel on this connection (sshd's MaxSessions).
class TooManyChannels : public Error {
 public:
  TooManyChannels()
      : Error(Error("cannot open a channel", "the server allows no further session on this connection",
                    "raise MaxSessions in its sshd_config, or ask for less at once")
                  .because(Cause::refused)) {}
};

// The link broke or the server cannot be reached: nothing is known of what runs there. Commands that ask for
// news take this as "unknown", never as "gone".
class Unreachable : public Error {
 public:
  explicit Unreachable(const Error& error) : Error(error.because(Cause::unreachable)) {}
  Unreachable(std::string_view what_failed, std::string_view reason, std::string_view hint = {})
      : Unreachable(Error(what_failed, reason, hint)) {}
};

using Stream = OutputStream;

// Receives output as it arrives, in pieces of any size, on the thread that pumps the connection.
using Sink = std::function<void(Stream, std::string_view)>;

// One command that runs on the server. Lives no longer than its Connection; used by the connection's thread
// alone.
class Channel {
 public:
  virtual ~Channel() = default;

  // How many bytes write() would take now without waiting: the room of the peer's receive window. 0 = full.
  virtual std::size_t writable() const = 0;
  // Hands bytes to the command's stdin; the caller keeps within writable(). Throws Error when the link is
  // gone.
  virtual void write(std::string_view data) = 0;
  // End of file on the command's stdin.
  virtual void close_input() = 0;
  // While paused, no output is taken from the link, so that the peer's window fills and the command waits.
  virtual void pause(bool paused) = 0;
  // True when both outputs came to their end and the command's end is known.
  virtual bool finished() const = 0;
  // How it ended; nullopt when the link went away before the server said. A TCP connection has none.
  virtual std::optional<ExitStatus> status() const = 0;

  // Leaves the command running for the next one that opens the same (Connection::parks), if nothing is under
  // way in either direction; destroy this object then. False: the command ends with this object, as usual.
  virtual bool park() { return false; }
  // Whether it was parked before: its command has been running for some time.
  virtual bool is_resumed() const { return false; }

  // Of a TCP connection (Connection::open_tcp): the server has not answered yet whether it opens it.
  virtual bool opening() const { return false; }
  // Why the server refused to open it, in the server's words; empty when it did not.
  virtual std::string refusal() const { return {}; }
  // The peer will send no more; it may still read.
  virtual bool output_ended() const { return finished(); }
};

// When a command is over whose output a process in the background holds open: one that a start file of the
// login shell has left, for example. sshd tells the command's end at once, and the end of the output only
// when that process has ended. A second of silence after the command's end is enough.
class OutputEnd {
 public:
  // Something has come.
  void heard() { heard_ = Clock::now(); }
  // When something came last; at first, when this was made.
  std::chrono::steady_clock::time_point last() const { return heard_; }
  // How long to wait yet, where nothing comes: nullopt while the command runs, 0 when it is over.
  std::optional<std::chrono::milliseconds> left(
      const Channel& channel, std::chrono::milliseconds quiet_time = std::chrono::milliseconds(1000));
  bool over(const Channel& channel) {
    return channel.finished() || left(channel) == std::chrono::milliseconds(0);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point heard_ = Clock::now();  // or the command's end, once that is known
  bool ended_ = false;
};

struct ExecRequest {
  std::string what = "command";          // for the log: "state of 3 jobs"
  std::string command{};                 // for the login shell: it should need no quotes
  std::string input{};                   // stdin, followed by end of file
  Sink sink{};                           // gets the output; without one, the result has it
  std::chrono::milliseconds timeout{0};  // 0: none. After it, exec() throws Error
  // True once nothing more is missing from the output. Then the command's end is the end, also where a
  // process that a start file left in the background holds the output open; without it, a second of silence
  // after the command's end is waited for.
  std::function<bool()> complete{};
  std::size_t max_output = std::size_t{16}
                           << 20U;  // output past this, also to a sink: Error (a server gone mad)
};

// How a connection logged in, for another server that is to log in there too.
struct LoginFacts {
  std::string user;
  std::string host;
  int port = 22;
  std::string host_key;        // "ssh-ed25519 AAAA…": what the server showed, and was checked
  std::set<std::string> keys;  // public keys that it accepted, in the wire format; none for a password
  std::vector<std::filesystem::path> key_files;  // the private halves of those that were read from a file
  std::string agent;                             // socket of the agent that may hold the others; empty: none
  std::string server;                            // its name in configs.yaml
};

// Folders of a server, absolute or below the home folder ("~/x"); "": none.
struct AgentFolders {
  std::string chosen;  // by the user: no other one is tried
  std::string jobs;    // of the project's jobs: tried late
};

// An authenticated connection to one server. Owned and used by one thread (libssh forbids sharing a session).
// Every function that talks to the server throws Error, without a server name: the fan-out adds it.
class Connection {
 public:
  virtual ~Connection() = default;

  // Starts a command. Its output goes to `sink` during pump(). Throws TooManyChannels when the server refuses
  // a further one (sshd's MaxSessions): open it on another connection.
  virtual std::unique_ptr<Channel> open(const std::string& command, Sink sink) = 0;

  // A hint, to be given for each command: it will be opened after the next one. Its round trips then happen
  // while the next command runs. It is started ahead, perhaps in vain, so it must wait for its input. Empty:
  // the command is not known yet.
  virtual void expect(const std::string& command) { static_cast<void>(command); }

  // Whether its channels can be parked (Channel::park).
  virtual bool parks() const { return false; }

  // Serves all channels once: sends what is queued, hands what has arrived to the sinks. Waits up to
  // `timeout` for the link or one of `also` to become ready (their revents are filled in); returns at once
  // when something was served. Throws Error when the link is dead.
  virtual void pump(std::chrono::milliseconds timeout, std::span<pollfd> also = {}) = 0;

  // Runs one command to its end. Throws Error on timeout, on a lost link, and Interrupted on cancel.
  ExecResult exec(const ExecRequest& request, const Cancel& cancel = Cancel());

  // While `on`, a link that is silent for seconds counts as lost: what runs answers at once, and others wait.
  virtual void be_watchful(bool on) { static_cast<void>(on); }

  // Whether another may go on with this connection: the link stands, and every command that was opened has
  // come to its end. Takes what has arrived, and waits for nothing.
  virtual bool idle() noexcept { return false; }

  // How long a command may say nothing before the first line of its answer: sshd may live where a login shell
  // hangs, or the storage of the home folder.
  virtual std::chrono::milliseconds answer_time() const { return answer_time_; }
  void set_answer_time(std::chrono::milliseconds time) { answer_time_ = time; }

  // Which folders of the server may take the agent.
  virtual const AgentFolders& agent_folders() const { return agent_folders_; }
  void set_agent_folders(AgentFolders folders) { agent_folders_ = std::move(folders); }

  // From now on open() throws Interrupted when this is cancelled while it waits for the server.
  virtual void heed(const Cancel& cancel) { static_cast<void>(cancel); }

  // Why nothing has come for a while, if packets get lost; "" otherwise, or if unknown. May take a second.
  virtual std::string explain_silence() { return {}; }

  // The server's name in configs.yaml, for the log.
  virtual std::string_view server() const { return {}; }

  // The address this connection reached, numeric, for MASTER_ADDR of a name that only the laptop resolves.
  virtual std::string peer_address() const = 0;

  // How this connection logged in; empty fields where that is not known.
  virtual LoginFacts login() const { return {}; }

  // Commands that are opened from now on may use the SSH agent behind this local socket (agent forwarding) to
  // list these keys (in the wire format) and to sign with them, and for nothing else. An empty path: none, as
  // at the beginning. Whoever is root on the server can do the same, while they run. The result is what these
  // commands must have as SSH_AUTH_SOCK, and remove at their end; empty: the server sees to both.
  virtual std::string forward_agent(const std::filesystem::path& socket, const std::set<std::string>& keys) {
    static_cast<void>(socket);
    static_cast<void>(keys);
    return {};
  }

  // A TCP connection that the server makes to this host and port, as it sees them. Does not wait for the
  // answer: see Channel::opening() and refusal(). close_input() passes the end of one direction on. Throws
  // Error when the link is dead, or when this connection cannot do it.
  virtual std::unique_ptr<Channel> open_tcp(const std::string& host, int port, Sink sink);

  // Asks the server to listen on this port of its loopback address, until the connection ends; waits for the
  // answer. Nobody uses the connection for anything else afterwards. Throws Error when the server refuses.
  virtual void listen_tcp(int port);
  // The port of listen_tcp() at which the next connection waits; 0: none does. Ask after each pump().
  virtual int incoming() { return 0; }
  // Takes that connection; only after incoming() has named a port.
  virtual std::unique_ptr<Channel> accept_tcp(Sink sink);

 private:
  std::chrono::milliseconds answer_time_ = std::chrono::seconds(10);
  AgentFolders agent_folders_;
};

// A connection is watchful as long as this lives, if it is `wanted`.
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
