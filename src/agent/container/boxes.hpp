#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"

// The containers of jobs, as seen from the server. A job's container is named remote-ID; other containers are
// never changed. All functions except find_engine() and box_name() run programs if a job has a container.
// After cancellation, every engine counts as not answering.

namespace remote::agent {

// docker or podman, under the name that the job used.
struct Engine {
  std::string name;
  std::map<std::string, std::string> variables;  // those that it needs: PATH, DOCKER_HOST and others

  friend bool operator==(const Engine&, const Engine&) = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): false positive of clang-tidy 14
  friend auto operator<=>(const Engine&, const Engine&) = default;
};

// The engine that runs the job's container; nullopt if it has none. Apptainer does not count, because its
// processes are the client's children.
std::optional<Engine> find_engine(const JobRecord& job);

enum class BoxState {
  missing,
  down,
  up,  // also if its engine does not answer, because the container may still run
};

std::string box_name(const std::string& id);  // "remote-0123…"

// Returns the states of these jobs' containers, with one query per engine. Jobs without an engine are
// omitted. An engine that hangs is skipped after 20 s. Throws CannotStart.
std::map<std::string, BoxState> list_boxes(const Host& host, const std::vector<const JobRecord*>& jobs);

// Looks up one job at a time, but queries each engine only once. Not thread-safe.
class BoxList {
 public:
  explicit BoxList(const Host& host) : host_(host) {}

  // nullopt if the job has no engine. Throws CannotStart.
  std::optional<BoxState> find(const JobRecord& job);
  bool is_silent(const JobRecord& job) const;
  void forget() { answers_.clear(); }

 private:
  const Host& host_;
  // Containers by name; nullopt if the engine does not answer.
  std::map<Engine, std::optional<std::map<std::string, BoxState>>> answers_;
};

// Returns how the command in a container ended, based on how the engine's client ended. The client exits with
// the code of the shell in the container: 128+N after signal N, but a command can also exit with such a code
// by itself. The shell writes a note, such as "Killed", only after a signal. It writes none after INT or
// PIPE, or if the shell itself is killed.
wire::ProcessEnd read_end_in_box(const wire::ProcessEnd& client, const Path& note);

// Sends a signal to all processes of a container through the engine. For KILL, use remove_box().
void signal_box(const Host& host, const JobRecord& job, int signal);
// Kills and removes the job's container, if there is one.
void remove_box(const Host& host, const JobRecord& job);

}  // namespace remote::agent
