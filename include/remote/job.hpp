#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/exit_status.hpp>

// What is known about a job, which is one command on one server. All of these are plain values: copy them
// freely, also between threads. Instants are seconds since the epoch (UTC) by this machine's clock; those
// that a server told are shifted by the measured difference of the two clocks.

namespace remote {

enum class JobState {
  starting,   // recorded, and not yet known to run
  running,    // its processes live
  succeeded,  // it exited with 0
  failed,     // it exited with another code, or a signal ended it that nobody had asked for
  killed,     // it was told to end, and it ended
  lost,       // it will never tell a result: it did not start, or its server restarted, or its folder is gone
  unknown     // its server does not answer; shown, but never stored
};

// The state's name, as JSON has it: "running".
std::string_view to_string(JobState state);
std::optional<JobState> parse_job_state(std::string_view name);
// Whether no news can change it: succeeded, failed, killed, lost.
bool is_final(JobState state);

// The id of a job, or of a launch: 32 lower-case hexadecimal digits and nothing else, so it is safe as a
// file's name and as a word of a shell script.
class JobId {
 public:
  JobId() { digits_.fill('0'); }  // 32 zeros: the id of no job

  // nullopt for a text of any other form.
  static std::optional<JobId> parse(std::string_view text);
  // A new one, from the system's random source.
  static JobId random();

  std::string text() const { return {digits_.data(), digits_.size()}; }

  friend auto operator<=>(const JobId&, const JobId&) = default;

 private:
  std::array<char, 32> digits_;
};

// Where jobs have their folders on a server: <project>/<jobs_folder>/<id>.
struct RemoteFolder {
  std::string project;      // "~/name", or an absolute path
  std::string jobs_folder;  // a name in it: ".jobs"
  friend auto operator<=>(const RemoteFolder&, const RemoteFolder&) = default;
};

struct Job {
  int key = 0;  // the small number that users type; unique in the project, never given twice
  JobId id;     // made before anything is sent to a server
  std::string server;
  JobState state = JobState::starting;
  std::optional<int> pid;
  std::optional<ExitStatus> result;  // exit code or signal
  std::string reason;  // why it is in this state, in a few words: "ended after rank 2", "out of memory"
  std::vector<std::string> tags;
  std::string command;          // as the user gave it, secrets masked
  std::optional<JobId> launch;  // shared by the ranks of one launch
  std::optional<int> rank;
  std::optional<int> world_size;
  bool hidden = false;
  RemoteFolder remote_folder;  // where it was started; configs.yaml may name another place by now
  std::int64_t created_at = 0;
  std::optional<std::int64_t> started_at;
  std::optional<std::int64_t> ended_at;
  std::optional<std::int64_t> checked_at;  // when its server last told about it
  // Time of the failure, of a job that failed or was killed, in milliseconds since the epoch. A process that
  // fails may need seconds to exit, so this can lie before ended_at. Not every server's clock allows it.
  std::optional<std::int64_t> failed_ms;

  bool has_tag(std::string_view tag) const;
  friend bool operator==(const Job&, const Job&) = default;
};

// Which jobs are meant. A job has to fit all four.
struct JobSelection {
  std::vector<std::string> names{};  // keys, or unambiguous starts of ids (4 digits or more); any of them
  std::vector<std::string> tags{};   // all of them
  std::vector<JobState> states{};    // any of them; none means all
  bool hidden = true;                // whether hidden jobs count; one that is named always does
};

}  // namespace remote
