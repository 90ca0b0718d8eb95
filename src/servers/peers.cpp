#include "servers/peers.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/hashing.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "servers/agent.hpp"
#include "servers/python_env.hpp"
#include "ssh/agent.hpp"
#include "ssh/pump.hpp"
#include "ssh/rsync_tunnel.hpp"

namespace remote::servers {
namespace {

// How often a server that waits for its turn checks whether it has come. In between, its connection is
// served.
constexpr std::chrono::milliseconds ask_peers_every{50};

// Collects rsync's lines and its exit status.
class PullOutput {
 public:
  // `mark`: see add_rsync_line().
  PullOutput(const SyncOptions& options, std::string mark) : options_(options), mark_(std::move(mark)) {}

  void take(const wire::PullProjectReply& reply) {
    received_ += reply.out.size();
    if (received_ > most_output) {
      throw Error("too much output", "rsync printed more than 256 MB").mended_by(Remedy::tell_more);
    }
    if (options_.log) {
      options_.log(ssh::Stream::out, reply.out);
      options_.log(ssh::Stream::err, reply.errors);
    }
    lines_.add(reply.out, [this](std::string_view line) { take_line(line); });
    if (reply.code) {
      ended = ExecResult{ExitStatus::exited(*reply.code), {}, reply.errors};
    }
  }

  SyncReport report{};
  std::optional<ExecResult> ended{};

 private:
  static constexpr std::size_t most_output = std::size_t{256} << 20U;  // for the names of files

  void take_line(std::string_view line) {
    const auto progress = ssh::parse_rsync_progress(line);
    if (!progress) {
      add_rsync_line(report, mark_, line);
    } else if (options_.on_progress) {
      options_.on_progress(*progress);
    }
  }

  const SyncOptions& options_;
  std::string mark_;
  std::size_t received_ = 0;
  LineCutter lines_{};
};

// Enables agent forwarding for one command, so that no other command of the connection can use the agent.
class Forwarding {
 public:
  // `source` is the server to log in to, with the keys that this machine used. If there are none, nothing is
  // forwarded.
  Forwarding(ssh::Connection& connection, const std::filesystem::path& socket, const ssh::LoginFacts& source)
      : connection_(connection) {
    const std::vector<std::string> words = split_words(source.host_key);
    const std::string host_key = words.size() == 2 ? base64_decode(words[1]).value_or("") : "";
    std::set<std::string> permissions;
    for (const std::string& key : source.keys) {
      permissions.insert(ssh::login_permission(key, source.user, host_key));
    }
    permissions.erase("");
    there_ = connection_.forward_agent(permissions.empty() ? std::filesystem::path() : socket, permissions);
  }
  ~Forwarding() { connection_.forward_agent({}, {}); }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

  // See Connection::forward_agent().
  const std::string& there() const { return there_; }

 private:
  ssh::Connection& connection_;
  std::string there_;
};

// Releases a source, however the transfer from it ends.
struct Release {
  PeerPool& pool;
  const std::string& server;
  ~Release() { pool.release(server); }
};

}  // namespace

PeerPool::Next PeerPool::next(const PeerSource& asking) {
  const std::lock_guard lock(mutex_);
  const auto free = std::ranges::find(sources_, false, &Entry::busy);
  if (free != sources_.end()) {
    free->busy = true;
    ++under_way_;
    return {Turn::from_peer, free->source};
  }
  if (under_way_ == 0) {
    ++under_way_;
    first_ = asking;
    return {Turn::from_here, std::nullopt};
  }
  return {Turn::wait, first_};
}

void PeerPool::begin_from_here() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void PeerPool::release(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(sources_, [&](const Entry& entry) { return entry.source.server == source; });
  if (found != sources_.end()) {
    found->busy = false;
  }
}

void PeerPool::finish(std::optional<PeerSource> source) {
  const std::lock_guard lock(mutex_);
  --under_way_;
  if (source) {
    sources_.push_back({std::move(*source), false});
  }
}

Peers::~Peers() = default;

std::filesystem::path Peers::agent_for(const PeerSource& source, const Cancel& cancel) {
  const std::lock_guard lock(keys_mutex_);
  bool held = false;
  for (const std::filesystem::path& key : source.login.key_files) {
    if (!no_agent_ && tried_.insert(key).second) {
      if (!is_there(key)) {
        continue;
      }
      try {
        if (!keys_) {
          keys_ = std::make_unique<ssh::KeyAgent>();
        }
        if (keys_->add(key, cancel)) {
          held_.insert(key);
        }
      } catch (const Error&) {
        no_agent_ = true;  // this machine has no ssh-agent, so only the servers' own keys can be used
      }
    }
    held = held || held_.contains(key);
  }
  return held ? keys_->socket() : std::filesystem::path(source.login.agent);
}

Peers::Part::Part(Peers& peers, ssh::Connection& connection, const config::Server& server)
    : peers_(peers), connection_(connection), server_(server) {
  self_.server = server.name;
  self_.login = connection.login();
  self_.host = server.internal_address.value_or(self_.login.host);
  self_.path = project_spec(peers.config_, server);
}

Peers::Part::~Part() {
  if (under_way_) {
    peers_.pool_.finish(std::nullopt);
  }
}

void Peers::Part::pass_on(const std::vector<std::string>& newer) {
  self_.unlike.insert(newer.begin(), newer.end());
  under_way_ = false;
  peers_.pool_.finish(self_);
}

void Peers::Part::take(const SyncOptions& options, const std::function<void(const std::string&)>& on_step,
                       const Cancel& cancel) {
  std::set<std::string> probed;
  for (;;) {
    const PeerPool::Next next = peers_.pool_.next(self_);
    under_way_ = next.turn != PeerPool::Turn::wait;
    if (next.turn == PeerPool::Turn::from_here) {
      return;
    }
    if (next.turn == PeerPool::Turn::from_peer) {
      on_step("from " + next.source->server);
      try {
        const Release release{peers_.pool_, next.source->server};
        pull(*next.source, false, options, cancel);
        from = next.source->server;
      } catch (const Error& error) {
        why = error.reason();
        return;
      }
      verify(on_step, cancel);
      return;
    }
    // While the first server receives the project, check whether it can be reached at all. If not, there is
    // no reason to wait for it.
    if (next.source && probed.insert(next.source->server).second) {
      try {
        pull(*next.source, true, options, cancel);
      } catch (const Error& error) {
        why = error.reason();
        peers_.pool_.begin_from_here();
        under_way_ = true;
        return;
      }
      on_step("waiting for " + next.source->server);
      continue;
    }
    ssh::Pump(connection_, cancel).wait(ask_peers_every);
  }
}

void Peers::Part::pull(const PeerSource& source, bool probe, const SyncOptions& options,
                       const Cancel& cancel) {
  const auto give_up = [&](const std::string& reason) -> Error {
    return {"cannot send the project",
            fmt::format("it cannot fetch the project from {} ({}): {}", source.server, source.host, reason)};
  };
  if (source.login.host_key.empty() || source.host.empty()) {
    throw give_up("its address or host key is unknown");
  }
  wire::PullProjectRequest request{
      .project = peers_.config_.project_path_on(server_),
      .work = scripts_folder(peers_.config_, server_) + "/peer." + random_hex(16),
      .host = source.host,
      .port = source.login.port,
      .user = source.login.user,
      .host_key = source.login.host_key,
      .path = source.path.substr(source.path.find(':') + 1),
      .only_probe = probe};
  AgentQuestion question;
  question.what = "files from " + source.server;
  std::set<std::string> asked;
  if (!probe) {
    for (const std::string& name : peers_.tree_.names(options.leave, cancel)) {
      if (!source.unlike.contains(name)) {
        question.data += name + '\0';
        asked.insert(name);
      }
    }
  }
  const Forwarding forwarding(connection_, peers_.agent_for(source, cancel), source.login);
  request.agent_socket = forwarding.there();
  const std::string mark = make_item_mark();
  request.arguments = peer_arguments(options, mark);
  question.request = std::move(request);
  PullOutput answer(options, mark);
  try {
    // Start a new agent, because only newly opened channels have the forwarded keys.
    Agent(connection_, cancel).ask_last(question, [&](wire::Reply reply) {
      answer.take(take_reply<wire::PullProjectReply>(std::move(reply)));
    });
  } catch (const Refused& refused) {
    throw give_up(refused.reason());
  }
  if (!answer.ended) {
    throw give_up("the server did not report how rsync ended");
  }
  // Missing or unreadable files are sent from the laptop instead.
  const ExitStatus status = answer.ended->status;
  const bool in_part = status.code() == 23 || status.code() == 24;  // the usual sync sends the others
  if (!status.success() && (probe || !in_part)) {
    const std::string said = last_lines(trim(answer.ended->err), 3);
    throw give_up(said.empty() ? "ended with " + status.describe() : said);
  }
  files = std::move(answer.report);
  files.newer.clear();  // the usual sync finds them again
  // A server must not learn the digests of files that it was not supposed to receive.
  std::erase_if(files.changed, [&](const std::string& name) { return !asked.contains(name); });
}

// rsync compares the sent data with the written data, but not with the laptop's. A job on the other server
// may have changed a file before or during the transfer, without changing its size and time.
void Peers::Part::verify(const std::function<void(const std::string&)>& on_step, const Cancel& cancel) {
  if (files.changed.empty()) {
    return;
  }
  on_step("comparing contents");
  AgentQuestion question;
  question.what = "comparing files";
  question.request = wire::CompareFilesRequest{peers_.config_.project_path_on(server_)};
  for (const std::string& name : files.changed) {
    // If a file has been removed here in the meantime, compare it with a digest that never matches, so that
    // it is removed there.
    question.data += peers_.tree_.digest(name, cancel).value_or(std::string(64, '0')) + " " + name + '\0';
  }
  try {
    take_reply<wire::CompareFilesReply>(ask_agent(connection_, question, cancel));
  } catch (const ssh::Unreachable&) {
    throw;
  } catch (const Error&) {
    unverified = true;  // nothing is proven, so the usual sync compares contents
  }
}

}  // namespace remote::servers
