// Forwards ports of servers to this machine. Each server has a thread and a connection that all of its ports
// share.

#include "project/forward.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <poll.h>

#include "base/error_of.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "base/threads.hpp"
#include "jobs/follow.hpp"
#include "jobs/job_servers.hpp"
#include "servers/listeners.hpp"
#include "ssh/tcp.hpp"

namespace remote::project {
namespace {

constexpr const char* default_host = "127.0.0.1";

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The tunnels of one server, and the indices of their ports in the request.
struct ServerPorts {
  config::Server server;
  std::vector<servers::Tunnel> tunnels{};
  std::vector<std::size_t> indices{};
};

void check_port(const ForwardedPort& port) {
  const auto possible = [](int number) { return number > 0 && number < 65536; };
  if (!possible(port.port) || (port.local != 0 && !possible(port.local)) || port.host.empty()) {
    throw Error::usage("cannot forward a port",
                       fmt::format("{} is not a port", possible(port.port) ? port.local : port.port),
                       "a port is a number from 1 to 65535");
  }
}

// Everything that can be checked without contacting a server.
std::vector<ServerPorts> sides_of(const Core& core, const std::vector<ForwardedPort>& ports) {
  std::vector<ServerPorts> sides;
  std::set<std::pair<std::string, int>> reverse;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const ForwardedPort& port = ports[i];
    check_port(port);
    const config::Server server = core.one_server(port.server, "cannot forward a port", "a port");
    auto side = std::ranges::find(sides, server.name, [](const ServerPorts& one) { return one.server.name; });
    if (side == sides.end()) {
      side = sides.insert(sides.end(), ServerPorts{server});
    }
    servers::Tunnel tunnel;
    tunnel.local = port.local > 0 ? port.local : port.port;
    tunnel.host = port.host;
    tunnel.port = port.port;
    if (!port.reverse) {
      tunnel.listener = servers::listen_on_loopback(tunnel.local);
    } else if (!reverse.emplace(server.name, port.port).second) {
      throw Error::usage("cannot forward a port to this machine",
                         fmt::format("port {} of {} is named twice", port.port, server.name), "name it once");
    }
    side->tunnels.push_back(std::move(tunnel));
    side->indices.push_back(i);
  }
  return sides;
}

void nap(milliseconds time, const Cancel& cancel) {
  pollfd slot{cancel.fd(), POLLIN, 0};
  static_cast<void>(::poll(&slot, 1, static_cast<int>(time.count())));
  cancel.check();
}

// Serves one server's tunnels until `stop`, over a new connection whenever one breaks.
class PortServer {
 public:
  PortServer(Core& core, ServerPorts side, const ForwardNews& news, const Cancel& stop)
      : core_(core), side_(std::move(side)), news_(news), stop_(stop) {}

  [[noreturn]] void serve() {
    for (;;) {
      const auto begin = Clock::now();
      try {
        serve_once();
      } catch (const Error& error) {
        stop_.check();
        // The connection that broke may still occupy a port of the server.
        const bool passes = error.cause() == Cause::unreachable || error.cause() == Cause::timeout ||
                            error.cause() == Cause::refused;
        if (!listening_ || !passes) {
          throw Error(error.on(side_.server.name));
        }
        if (!lost_) {
          core_.tell(LinkLost{side_.server.name, error.reason()});
        }
        lost_ = true;
        // The first retry is immediate, then after 0.2 s, 0.4 s … up to 5 s: a laptop that wakes up
        // reconnects quickly.
        failures_ = Clock::now() - begin > std::chrono::seconds(10) ? 0 : failures_;
        nap(milliseconds(failures_ > 0 ? std::min(5000, 100 << std::min(failures_, 7)) : 0), stop_);
        ++failures_;
      }
    }
  }

 private:
  [[noreturn]] void serve_once() {
    const auto connection = core_.connector().connect(side_.server, stop_);
    servers::Forwarding forwarding(
        *connection, side_.tunnels,
        [this](std::size_t tunnel, const Error& error) {
          news_.refused(side_.indices[tunnel],
                        with_address(side_.tunnels[tunnel], error).on(side_.server.name));
        },
        stop_);
    if (!std::exchange(listening_, true)) {
      for (std::size_t i = 0; i < side_.tunnels.size(); ++i) {
        news_.listening(side_.indices[i], {side_.server.name, side_.tunnels[i].local});
      }
    }
    if (std::exchange(lost_, false)) {
      core_.tell(LinkBack{side_.server.name});
    }
    forwarding.serve();
  }

  // The error or, if the port is open on another address, one that names that address.
  Error with_address(const servers::Tunnel& tunnel, const Error& error) {
    if (!tunnel.listener || tunnel.host != default_host || error.cause() != Cause::refused) {
      return error;
    }
    try {
      const auto connection = core_.connector().connect(side_.server, stop_);
      const std::vector<std::string> open = servers::list_listeners(*connection, tunnel.port, stop_);
      const bool everywhere = std::ranges::any_of(open, [](const std::string& one) {
        return one == default_host || one == "0.0.0.0" || one == "::";
      });
      if (open.empty() || everywhere) {
        return error;
      }
      const std::string place = host_and_port(open.front(), tunnel.port);
      return Error(fmt::format("nothing listens on {}", host_and_port(default_host, tunnel.port)),
                   fmt::format("port {} is open on {}", tunnel.port, join(open, ", ")),
                   fmt::format("name the address, too: {}:{}", tunnel.local, place))
          .because(Cause::refused);
    } catch (const Error& failure) {
      log_info(side_.server.name, "{}", failure.message());
      return error;
    }
  }

  Core& core_;
  ServerPorts side_;
  const ForwardNews& news_;
  const Cancel& stop_;
  bool listening_ = false;
  bool lost_ = false;
  int failures_ = 0;
};

// The result of the threads: the first error, or the end of the job.
class ForwardOutcome {
 public:
  void run(const std::function<void()>& work) {
    const SigpipeGuard guard;
    try {
      work();
    } catch (const Interrupted&) {  // the calling thread knows why
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      error_ = error_ ? error_ : std::optional(error_of(error));
      over.cancel();
    }
  }
  void check() const {
    const std::lock_guard lock(mutex_);
    if (error_) {
      throw Error(*error_);
    }
  }
  Cancel over;

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

// Waits until the job ends, over a separate connection.
void await_end(Core& core, const Job& job, const ForwardNews& news, const Cancel& stop) {
  jobs::FollowOptions options;
  options.silent = {true};
  options.patience = std::chrono::seconds(60);
  jobs::FollowEvents events;
  events.output = [](std::size_t, ssh::Stream, std::string_view) {};
  events.link = [](const Event&) {};  // reported by that server's thread
  events.ended = [](std::size_t, const Job&) {};
  jobs::Site site = core.site();
  site.cancel = stop;
  const jobs::FollowResult result = jobs::follow(site, {job}, options, events);
  for (const Error& error : result.errors) {
    throw Error(error);
  }
  news.ended(result.jobs.front());
}

// The server that runs this rank of the launch.
std::string server_of_rank(Core& core, const std::string& launch, int rank) {
  const std::vector<Job> jobs = list(core, {.selection = {.launches = {launch}}, .some = true, .ask = false});
  const auto has = [&](const Job& job) {
    return job.rank && rank >= *job.rank && rank < *job.rank + ranks_of(job);
  };
  const auto found = std::ranges::find_if(jobs, has);
  if (found == jobs.end()) {
    throw Error::usage("cannot forward a port", fmt::format("the launch has no rank {}", rank),
                       fmt::format("its ranks are 0 to {}; name another rank or launch",
                                   std::max(jobs.front().world_size.value_or(1), 1) - 1));
  }
  if (jobs::is_of_slurm(core.config, *found)) {
    throw Error::usage("cannot forward a port", fmt::format("rank {} runs on a node of Slurm", rank),
                       "forward the port through its login node, which can connect to the node");
  }
  return found->server;
}

}  // namespace

void forward(Core& core, const std::vector<ForwardedPort>& ports, const std::optional<Job>& job,
             const ForwardNews& news) {
  std::vector<ServerPorts> sides = sides_of(core, ports);
  ForwardOutcome outcome;
  Cancel stop;
  std::vector<JoiningThread> threads;
  const CancelAtEnd at_end{stop};
  for (ServerPorts& side : sides) {
    threads.emplace_back([&core, &news, &stop, &outcome, &side] {
      outcome.run([&] { PortServer(core, std::move(side), news, stop).serve(); });
    });
  }
  if (job) {
    threads.emplace_back([&] {
      outcome.run([&] {
        await_end(core, *job, news, stop);
        outcome.over.cancel();
      });
    });
  }
  std::array<pollfd, 2> fds{{{core.cancel().fd(), POLLIN, 0}, {outcome.over.fd(), POLLIN, 0}}};
  while (!core.cancel().cancelled() && !outcome.over.cancelled()) {
    static_cast<void>(::poll(fds.data(), fds.size(), -1));
  }
  stop.cancel();
  threads.clear();  // joins them
  core.cancel().check();
  outcome.check();
}

namespace {

void forward_requested(Core& core, const ForwardRequest& request) {
  if (request.ports.empty()) {
    throw Error::usage("cannot forward a port", "no port is named", "name one");
  }
  std::vector<ForwardedPort> ports = request.ports;
  for (ForwardedPort& port : ports) {
    if (port.rank) {
      port.server = server_of_rank(core, request.launch, *port.rank);
    }
  }
  if (request.job && is_final(request.job->state)) {
    throw Error::usage("cannot forward a port", fmt::format("job {} has ended", request.job->key),
                       "name a job that runs");
  }
  const SettledAtTheEnd settled(core);
  const auto with = [](const auto& callback) {
    return [&callback](const auto&... arguments) {
      if (callback) {
        callback(arguments...);
      }
    };
  };
  const auto listening = core.on_caller(request.on_listening);
  const auto refused = core.on_caller(request.on_refused);
  const auto ended = core.on_caller(request.on_ended);
  forward(core, ports, request.job, {with(listening), with(refused), with(ended)});
}

}  // namespace

}  // namespace remote::project

namespace remote {

void Project::forward(const ForwardRequest& request, const std::optional<Cancel>& cancel) {
  project::call_servers(*state_, cancel,
                        [&](project::Core& core) { project::forward_requested(core, request); });
}

}  // namespace remote
