#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/exit_status.hpp>

namespace remote::jobs {

enum class State { starting, running, succeeded, failed, killed, lost, unknown };

std::string_view to_string(State state);
std::optional<State> parse_state(std::string_view text);
// Whether no news can change it: succeeded, failed, killed, lost.
bool is_final(State state);

// Whether a text has the form of a job's id: 32 lower-case hexadecimal digits. It becomes part of file names.
bool valid_job_id(std::string_view id);

// One job, as .remote/jobs/<id>/job.json has it: the laptop's index of the job folder on the server. Times
// are seconds since the epoch on the laptop's clock (server times are shifted by the measured difference of
// clocks).
struct Job {
  int key = 0;     // small number that users type; unique in the project, never used twice
  std::string id;  // 32 hexadecimal digits, made before anything is sent
  std::string server;
  State state = State::starting;
  std::optional<int> pid;
  std::optional<ExitStatus> result;  // exit code or signal
  std::string reason;  // why, in a few words: "ended after rank 2", "out of memory", "never started"
  std::vector<std::string> tags;
  std::string command;                // as the user gave it, secrets masked
  std::optional<std::string> launch;  // shared by the ranks of one launch
  std::optional<int> rank;
  std::optional<int> world_size;
  bool hidden = false;
  std::string remote_folder;  // "~/name/.jobs/<id>", as remote_path_word() takes it
  std::int64_t created_at = 0;
  std::optional<std::int64_t> started_at;
  std::optional<std::int64_t> ended_at;
  std::optional<std::int64_t> checked_at;  // when a server last told about it
  // When what ended it came to pass, in milliseconds, of a job that failed or was killed: see
  // failure_moment(). Where its server tells no parts of a second it is not known.
  std::optional<std::int64_t> failed_ms;

  bool has_tag(std::string_view tag) const;
  friend bool operator==(const Job&, const Job&) = default;
};

}  // namespace remote::jobs
