// `remote forward SERVER [LOCAL:]PORT…`: forwards ports of servers to this machine. `remote tensorboard` and
// `remote jupyter`: start a job and forward its port.

#include <algorithm>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <remote/forward.hpp>

#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"

namespace remote::cli {
namespace {

struct ForwardArguments {
  std::vector<std::string> words;
  std::vector<std::string> reverse;
  std::string job;
  std::string launch;
};

std::string example(const std::vector<std::string>& servers) {
  return "for example: remote forward " + (servers.empty() ? "gpu1" : servers.front()) + " 6006";
}

std::optional<int> port_of(std::string_view text) {
  const auto port = parse_number<int>(text);
  return port && *port > 0 && *port < 65536 ? port : std::nullopt;
}

// 3 for "rank:3".
std::optional<int> rank_of(std::string_view text) {
  return text.starts_with("rank:") ? parse_number<int>(text.substr(5)) : std::nullopt;
}

Error wrong_port(const std::string& word) {
  return Error::usage("remote forward", fmt::format("'{}' names no port", visible_line(word, 60)),
                      "a port is PORT, LOCAL:PORT, LOCAL:HOST:PORT or rank:N:PORT, and PORT is 1 to 65535");
}

// Parses PORT, LOCAL:PORT, LOCAL:HOST:PORT and rank:N:PORT; nullopt for any other form, which is a server.
std::optional<ForwardedPort> parse_port(const std::string& word) {
  const std::size_t colon = word.rfind(':');
  const std::string_view last = std::string_view(word).substr(colon == std::string::npos ? 0 : colon + 1);
  if (last.empty() || last.find_first_not_of("0123456789") != std::string_view::npos ||
      (colon != std::string::npos && rank_of(word))) {
    return std::nullopt;
  }
  ForwardedPort port;
  const auto number = port_of(last);
  if (!number) {
    throw wrong_port(word);
  }
  port.port = *number;
  if (colon == std::string::npos) {
    return port;
  }
  std::string before = word.substr(0, colon);
  if (const std::size_t rank = before.find("rank:"); rank != std::string::npos) {
    port.rank = rank_of(std::string_view(before).substr(rank));
    if (!port.rank || (rank > 0 && before[rank - 1] != ':')) {
      throw wrong_port(word);
    }
    before = before.substr(0, rank > 0 ? rank - 1 : 0);
  } else if (const std::size_t host = before.find(':'); host != std::string::npos) {
    port.host = before.substr(host + 1);
    if (port.host.starts_with('[') && port.host.ends_with(']')) {
      port.host = port.host.substr(1, port.host.size() - 2);
    }
    before = before.substr(0, host);
  }
  if (!before.empty() || !port.rank) {
    const auto local = port_of(before);
    if (!local || port.host.empty()) {
      throw wrong_port(word);
    }
    port.local = *local;
  }
  return port;
}

// Parses PORT and PORT:LOCAL.
ForwardedPort parse_reverse(const std::string& word) {
  ForwardedPort port;
  const std::size_t colon = word.find(':');
  const auto there = port_of(std::string_view(word).substr(0, colon));
  const auto here = colon == std::string::npos ? there : port_of(std::string_view(word).substr(colon + 1));
  if (!there || !here) {
    throw Error::usage("remote forward", fmt::format("wrong --reverse '{}'", visible_line(word, 60)),
                       "it must be PORT of the server, or PORT:LOCAL");
  }
  port.port = *there;
  port.local = *here;
  port.reverse = true;
  return port;
}

// A word that is not a port is the server for the following ports; --reverse applies to the last one.
std::vector<ForwardedPort> ports_of(Context& context, const ForwardArguments& arguments) {
  std::vector<ForwardedPort> ports;
  std::optional<std::string> server;
  bool without_port = false;  // for the last server
  const auto require_port = [&] {
    if (without_port) {
      throw Error::usage("remote forward",
                         fmt::format("'{}' names no port, nor a server with one", visible_line(*server, 60)),
                         example(context.project().server_names()));
    }
  };
  const auto add = [&](ForwardedPort port) {
    if (!port.rank) {
      const std::vector<std::string> names = context.project().server_names();
      if (!server && names.size() != 1) {
        throw Error::usage("remote forward", "it needs a server: " + join(names, ", "), example(names));
      }
      port.server = server.value_or(names.front());
      port.rank = rank_of(port.server);
    }
    ports.push_back(std::move(port));
  };
  for (const std::string& word : arguments.words) {
    if (const auto port = parse_port(word)) {
      add(*port);
      without_port = false;
    } else {
      require_port();
      server = word;
      without_port = true;
    }
  }
  for (const std::string& word : arguments.reverse) {
    add(parse_reverse(word));
    without_port = false;
  }
  if (ports.empty()) {
    throw Error::usage("remote forward", "it needs a port", example(context.project().server_names()));
  }
  require_port();
  return ports;
}

std::string here(int port) {
  return fmt::format("127.0.0.1:{}", port);
}

// Prints the ports once all of them are listening.
class Ports {
 public:
  Ports(Context& context, std::vector<ForwardedPort> ports)
      : context_(context), ports_(std::move(ports)), listening_(ports_.size()) {}

  void take(std::size_t index, const Listening& listening) {
    listening_[index] = listening;
    if (++known_ == ports_.size()) {
      print();
    }
  }

 private:
  void print() {
    auto all = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      const ForwardedPort& port = ports_[i];
      const Listening& one = listening_[i];
      const std::string there = port.host == "127.0.0.1"
                                    ? fmt::format("{}:{}", one.server, port.port)
                                    : fmt::format("{}:{} through {}", port.host, port.port, one.server);
      all.push_back({{"server", one.server},
                     {"local_port", one.local},
                     {"host", port.host},
                     {"port", port.port},
                     {"reverse", port.reverse}});
      if (context_.options.json) {
        continue;
      }
      context_.terminal.out(port.reverse
                                ? fmt::format("{} -> {} here\n", there, here(one.local))
                                : fmt::format("http://{} -> {}\n", here(one.local), visible_line(there)));
      const int wanted = port.local > 0 ? port.local : port.port;
      if (one.local != wanted) {
        context_.terminal.notice(
            fmt::format("port {} is taken on this machine, or not allowed: {} is used", wanted, one.local));
      }
    }
    if (context_.options.json) {
      context_.print(all);
    }
    context_.terminal.notice("Ctrl-C ends it");
  }

  Context& context_;
  std::vector<ForwardedPort> ports_;
  std::vector<Listening> listening_;
  std::size_t known_ = 0;
};

// A broken connection also breaks the open connections through it, unlike when following jobs.
void show_link_news(Context& context) {
  context.on_event = [&context](const Event& event) {
    const auto* lost = std::get_if<LinkLost>(&event);
    const auto* back = std::get_if<LinkBack>(&event);
    if (context.stream || (lost == nullptr && back == nullptr)) {
      context.show(event);
    } else if (lost != nullptr) {
      context.terminal.notice(
          fmt::format("{}: connection lost ({}). Connecting again …", lost->server, lost->reason));
    } else {
      context.terminal.notice(back->server + ": connected again; reload open pages");
    }
  };
}

int run_forward(Context& context, const ForwardArguments& arguments) {
  context.when_interrupted = "the forwarding has ended";
  ForwardRequest request;
  request.ports = ports_of(context, arguments);
  request.launch = arguments.launch.empty() ? request.launch : arguments.launch;
  if (!arguments.job.empty()) {
    const std::vector<Job> jobs =
        context.project().jobs({.selection = {.names = {arguments.job}}, .some = true});
    if (is_final(jobs.front().state)) {
      throw Error::usage("remote forward",
                         fmt::format("{} has ended: {}", describe(jobs.front()), state_text(jobs.front())),
                         "name a job that runs, or leave --job out");
    }
    request.job = jobs.front();
  }
  Ports ports(context, request.ports);
  request.on_listening = [&](std::size_t index, const Listening& one) { ports.take(index, one); };
  request.on_refused = [&](std::size_t, const Error& error) { context.show(error); };
  request.on_ended = [&](const Job& job) {
    context.terminal.notice(fmt::format("{}: {}", describe(job), state_text(job)));
  };
  show_link_news(context);
  context.project().forward(request);
  return 0;
}

struct WebArguments {
  WebRequest request;
};

void show_address(Context& context, const WebRequest& request, const Job& job, const Listening& listening,
                  const std::string& address) {
  if (context.options.json) {
    context.print({{"server", listening.server},
                   {"job", job.key},
                   {"local_port", listening.local},
                   {"address", address}});
  } else {
    context.terminal.out(address + "\n");
  }
  if (request.local > 0 && listening.local != request.local) {
    context.terminal.notice(fmt::format("port {} is taken on this machine, or not allowed: {} is used",
                                        request.local, listening.local));
  }
}

int run_web(Context& context, const WebArguments& arguments) {
  WebRequest request = arguments.request;
  const std::string name = request.tool == WebTool::jupyter ? "jupyter" : "tensorboard";
  bool ended = false;
  bool left = false;  // left running
  int key = 0;
  request.on_job = [&](const Job& job, bool joined) {
    key = job.key;
    left = joined || request.keep;
    context.terminal.notice(fmt::format("job {}, {} on {}, {}; waiting for its port …", job.key, name,
                                        job.server, joined ? "runs already" : "has started"));
  };
  request.on_address = [&](const Job& job, const Listening& listening, const std::string& address) {
    show_address(context, request, job, listening, address);
    context.terminal.notice(left ? "Ctrl-C ends the forwarding; the job keeps running"
                                 : "Ctrl-C stops the job, too (--keep leaves it running)");
  };
  request.on_refused = [&](const Error& error) { context.show(error); };
  request.on_ended = [&](const Job& job) {
    ended = !has_failed(job);
    context.terminal.notice(fmt::format("{}: {}", describe(job), state_text(job)));
  };
  request.on_killed = [&](const KillResult& killed) {
    context.show(killed.errors);
    for (const KillResult::Entry& entry : killed.entries) {
      context.terminal.notice(fmt::format("{}: {}", describe(entry.job), state_text(entry.job)));
    }
  };
  show_link_news(context);
  try {
    context.project().web(request);
  } catch (const Interrupted&) {
    context.when_interrupted =
        left ? fmt::format("job {} continues; stop it with: remote job-kill {}", key, key)
             : "the forwarding has ended";
    throw;
  }
  return ended ? 0 : 1;
}

WebRequest& add_web(CLI::App& command, Context& context, WebTool tool) {
  WebRequest& request = arguments_of(command, context, run_web, {{.tool = tool}}).request;
  context
      .completers[command.add_option("--server", request.server, "Server to run on (default: the first one)")
                      ->type_name("S")] = NameKind::servers;
  add_number_option(command, "--port", request.local,
                    fmt::format("Port on this machine (default: {})", tool == WebTool::jupyter ? 8888 : 6006),
                    "PORT", 1, 65535);
  command.add_flag("--keep", request.keep, "Leave the job running when this ends");
  return request;
}

}  // namespace

void add_forward(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_forward);
  CLI::Option* words =
      command.add_option("ports", arguments.words,
                         "Server (or rank:N) and its ports: PORT, LOCAL:PORT, LOCAL:HOST:PORT, rank:N:PORT");
  words->type_name("SERVER PORT");
  context.completers[words] = NameKind::servers;
  command
      .add_option("--reverse", arguments.reverse,
                  "PORT or PORT:LOCAL: let the server's PORT reach LOCAL here; repeatable")
      ->type_name("PORT")
      ->allow_extra_args(false);
  context.completers[command.add_option("--job", arguments.job, "End when this job has ended")
                         ->type_name("KEY")] = NameKind::jobs;
  context
      .completers[command.add_option("--launch", arguments.launch, "Launch of rank:N (default: the newest)")
                      ->type_name("KEY")] = NameKind::launches;
}

void add_tensorboard(CLI::App& command, Context& context) {
  WebRequest& request = add_web(command, context, WebTool::tensorboard);
  command
      .add_option("logdir", request.folder,
                  "Folder of the event files, from the project's folder on (default: runs)")
      ->type_name("LOGDIR");
}

void add_jupyter(CLI::App& command, Context& context) {
  add_web(command, context, WebTool::jupyter);
}

}  // namespace remote::cli
