#include "ssh/agent_channel.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "server/agent_command.hpp"

namespace remote::ssh {
namespace {

// A login shell may print anything before the agent answers. If a line is longer than this, its rest is
// ignored.
constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_before = std::size_t{16} << 20U;

const server::Agent& agent_for(std::string_view architecture) {
  if (const server::Agent* agent = server::find_agent(architecture)) {
    return *agent;
  }
  std::vector<std::string> known;
  for (const server::Agent& agent : server::agents()) {
    known.emplace_back(agent.architecture);
  }
  throw Error("cannot use this server",
              fmt::format("its architecture is {}, and this build of remote has an agent for {} only",
                          visible_line(architecture, 64), join(known, " and ")),
              "install a package of remote, which has all agents, or build it with "
              "-DREMOTE_AGENT_ARCHITECTURES=\"x86_64;aarch64\"")
      .because(Cause::refused);
}

}  // namespace

Error terminal_in_between() {
  return Error("cannot start the agent",
               "the server runs commands on a terminal, which changes the bytes: a ForceCommand such as "
               "script, "
               "or a gateway, is in between",
               "use the machine's own address and port, or a login without that command")
      .because(Cause::refused);
}

AgentStart::AgentStart(std::string_view request, AgentFolders folders)
    : request_(fmt::format("{}\n{}", request.size(), request)), folders_(std::move(folders)) {}

bool AgentStart::has_echo() const {
  // A byte of the request can interrupt the shell; then only "^C" is echoed.
  return trim(printed_).ends_with("^C") ||
         printed_.find(request_.substr(0, request_.find('\n')) + "\r\n") != std::string::npos;
}

void AgentStart::resume() {
  state_ = State::running;
  request_.erase(0, request_.find('\n') + 1);
}

void AgentStart::take_line(std::string_view line, const std::function<void(std::string_view)>& send) {
  const auto end_printed = [&] { printed_.resize(std::min(printed_.rfind(line), printed_.size())); };
  if (line == server::agent_here) {
    state_ = State::running;
    end_printed();
  } else if (const auto need = server::parse_agent_need(line)) {
    if (state_ == State::installing) {
      throw Error("cannot start the agent", "the server keeps asking for it").mended_by(Remedy::tell_more);
    }
    state_ = State::installing;
    end_printed();
    send(server::agent_installation(agent_for(need->architecture), need->has_xz, folders_.chosen,
                                    folders_.jobs));
    send(request_);  // the server has discarded the first request
  } else if (line.starts_with(server::agent_failed)) {
    const std::string_view reasons = line.substr(server::agent_failed.size());
    if (reasons == server::failed_on_terminal) {
      throw terminal_in_between();
    }
    const bool names_folders = reasons.find(": ") != std::string_view::npos;
    throw Error("cannot start the agent", visible_line(reasons, 1000),
                names_folders
                    ? "free some space in one of these folders, or  set 'agent' in configs.yaml to a folder "
                      "of the server that is not mounted noexec"
                    : "")
        .because(Cause::refused);
  }
}

std::string_view AgentStart::take(std::string_view data, const std::function<void(std::string_view)>& send) {
  if (state_ != State::running && (received_ += data.size()) > most_before) {
    throw Error("too much output", "the server prints without end before the agent starts",
                "check the output of the login shell's start files");
  }
  if (state_ == State::asked) {
    append_end(printed_, data);
  }
  while (state_ != State::running && !data.empty()) {
    const std::size_t end = data.find('\n');
    const bool is_whole = end != std::string_view::npos;
    line_ += data.substr(
        0, std::min(is_whole ? end : data.size(), longest_line - std::min(line_.size(), longest_line)));
    data.remove_prefix(is_whole ? end + 1 : data.size());
    if (is_whole) {
      take_line(trim(std::exchange(line_, {})), send);
    }
  }
  return data;
}

std::unique_ptr<Flow> open_agent(Pump& pump, Sink sink, const std::shared_ptr<AgentStart>& start) {
  struct State {
    Sink sink;
    Flow* flow = nullptr;
  };
  const auto state = std::make_shared<State>(State{std::move(sink)});
  auto flow = std::make_unique<Flow>(pump, server::agent_command(pump.connection().agent_folders().chosen),
                                     [state, start](Stream stream, std::string_view data) {
                                       if (stream == Stream::out) {
                                         data = start->take(
                                             data, [&](std::string_view bytes) { state->flow->send(bytes); });
                                       }
                                       if (!data.empty()) {
                                         state->sink(stream, data);
                                       }
                                     });
  state->flow = flow.get();
  if (flow->channel().is_resumed()) {
    start->resume();
  }
  flow->send(start->request());
  flow->expect_answer([start] { return start->is_running(); }, [start] { return start->is_installing(); });
  return flow;
}

}  // namespace remote::ssh
