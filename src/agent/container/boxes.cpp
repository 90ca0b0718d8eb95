#include "agent/container/boxes.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <utility>

#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_bytes = std::size_t{8} << 20U;

bool is_for_engine(std::string_view name) {
  constexpr std::array<std::string_view, 4> known{"PATH", "HOME", "XDG_RUNTIME_DIR", "TMPDIR"};
  return name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string_view::npos &&
         (std::ranges::find(known, name) != known.end() || name.starts_with("DOCKER_") ||
          name.starts_with("CONTAINER"));
}

RunResult ask_engine(const Host& host, const Engine& engine, std::vector<std::string> words) {
  Host as_job = host;
  for (const auto& [name, value] : engine.variables) {
    as_job.environment[name] = value;
  }
  as_job.environment.erase("REMOTE_JOB_ID");
  words.insert(words.begin(), engine.name);
  return run(as_job, {.argv = std::move(words), .limit = std::chrono::seconds(20), .max_output = most_bytes});
}

// Returns the containers by name; nullopt if the engine does not answer.
std::optional<std::map<std::string, BoxState>> ask_boxes(const Host& host, const Engine& engine) {
  const RunResult result = ask_engine(
      host, engine,
      {"ps", "--all", "--no-trunc", "--filter", "name=remote-", "--format", "{{.Names}} {{.Status}}"});
  if (!result.succeeded() || result.out.size() >= most_bytes) {
    return std::nullopt;
  }
  std::map<std::string, BoxState> boxes;
  for (const std::string& line : split(result.out, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos) {
      continue;
    }
    const std::string_view status = std::string_view(line).substr(blank + 1);
    constexpr std::array<std::string_view, 5> living{"Up", "Paused", "Restarting", "Stopping", "stopping"};
    const bool is_up =
        std::ranges::any_of(living, [&](std::string_view begin) { return status.starts_with(begin); });
    boxes[line.substr(0, blank)] = is_up ? BoxState::up : BoxState::down;
  }
  return boxes;
}

}  // namespace

std::optional<Engine> find_engine(const JobRecord& job) {
  const std::optional<std::string> text = read_job_file(job.folder / "container", std::size_t{64} << 10U);
  std::vector<std::string> lines = split(text.value_or(""), '\n');
  if (lines.empty()) {
    return std::nullopt;
  }
  lines.pop_back();  // an incomplete line, or empty
  Engine engine;
  for (const std::string& line : lines) {
    const std::string_view words = trim(line);
    const std::size_t blank = words.find_first_of(" \t");
    const std::string_view name = words.substr(0, blank);
    const std::string_view value =
        blank == std::string_view::npos ? std::string_view() : trim(words.substr(blank));
    if (engine.name.empty()) {
      engine.name = value;  // the first line names the engine
    } else if (is_for_engine(name)) {
      engine.variables[std::string(name)] = value;
    }
    if (engine.name != "docker" && engine.name != "podman") {
      return std::nullopt;
    }
  }
  return engine.name.empty() ? std::nullopt : std::optional(std::move(engine));
}

std::string box_name(const std::string& id) {
  return "remote-" + id;
}

std::optional<BoxState> BoxList::find(const JobRecord& job) {
  const std::optional<Engine> engine = find_engine(job);
  if (!engine) {
    return std::nullopt;
  }
  auto answer = answers_.find(*engine);
  if (answer == answers_.end()) {
    answer = answers_.emplace(*engine, ask_boxes(host_, *engine)).first;
  }
  if (!answer->second) {
    return BoxState::up;
  }
  const auto box = answer->second->find(box_name(job.id));
  return box != answer->second->end() ? box->second : BoxState::missing;
}

bool BoxList::is_silent(const JobRecord& job) const {
  const std::optional<Engine> engine = find_engine(job);
  const auto answer = engine ? answers_.find(*engine) : answers_.end();
  return answer != answers_.end() && !answer->second;
}

std::map<std::string, BoxState> list_boxes(const Host& host, const std::vector<const JobRecord*>& jobs) {
  BoxList boxes(host);
  std::map<std::string, BoxState> states;
  for (const JobRecord* job : jobs) {
    if (const auto state = boxes.find(*job)) {
      states.emplace(job->id, *state);
    }
  }
  return states;
}

wire::ProcessEnd read_end_in_box(const wire::ProcessEnd& client, const Path& note) {
  const int signal = client.code - 128;
  const bool may_be_signal = client.signal == 0 && signal > 0 && signal <= 64;
  const bool has_note = !trim(read_job_line(note).value_or("")).empty();
  const bool is_signal =
      may_be_signal && (has_note || signal == SIGKILL || signal == SIGINT || signal == SIGPIPE);
  return is_signal ? wire::ProcessEnd::signalled(signal) : client;
}

void signal_box(const Host& host, const JobRecord& job, int signal) {
  if (const std::optional<Engine> engine = find_engine(job)) {
    ask_engine(host, *engine, {"exec", box_name(job.id), "sh", "-c", text::format("kill -{} -1", signal)});
  }
}

void remove_box(const Host& host, const JobRecord& job) {
  if (const std::optional<Engine> engine = find_engine(job)) {
    // podman's rm sends TERM and waits, so kill first.
    ask_engine(host, *engine, {"kill", "--signal", "KILL", box_name(job.id)});
    ask_engine(host, *engine, {"rm", "--force", box_name(job.id)});
  }
}

}  // namespace remote::agent
