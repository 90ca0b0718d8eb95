#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>

// A sweep: one command for many parameter values, one job per point. The servers run the points one after the
// other, without this program. All of these are plain values.

namespace remote {

// Larger sweeps are an Error (usage).
inline constexpr std::size_t most_sweep_points = 10000;

struct SweepParameter {
  std::string name;  // letters, digits and '_', not starting with a digit
  std::vector<std::string> values;
};

// Parses "lr=1e-3,1e-4", "seed=0..4" (0, 1, 2, 3, 4), or a mix of both. Throws Error (usage).
SweepParameter parse_sweep_parameter(const std::string& text);
// The rows of a CSV text whose first line has the parameter names. Throws Error (usage) with the line.
using SweepRow = std::vector<std::pair<std::string, std::string>>;
std::vector<SweepRow> parse_sweep_rows(const std::string& csv);
// The points: every row (or a single empty row) combined with every combination of the parameters; the last
// parameter varies fastest. Throws Error (usage) for zero or too many points, or a repeated name.
std::vector<SweepRow> sweep_points(const std::vector<SweepParameter>& parameters,
                                   const std::vector<SweepRow>& rows);
// A word of the command with `{name}` replaced by the point's value; `{{` and `}}` stand for braces. Throws
// Error (usage) for an unknown name.
std::string fill_sweep_word(const std::string& word, const SweepRow& point);
// Whether this is a point that has not started anywhere, as far as known here.
inline bool waits_for_turn(const Job& job) {
  return job.point && job.point->waiting && !is_final(job.state);
}
// "lr=1e-4 seed=2"
std::string sweep_point_text(const SweepRow& point);
// The environment variable with a parameter's value: "SWEEP_LR".
std::string sweep_variable(std::string_view parameter);

struct SweepRequest {
  // The command. Either words, each filled in and then passed on exactly; or one line for the server's shell,
  // which only accepts values of harmless characters.
  std::vector<std::string> words{};
  std::string line{};
  std::vector<SweepParameter> parameters{};
  std::vector<SweepRow> rows{};
  std::vector<std::string> servers{};  // names or globs; none: all
  Env env{};
  std::optional<std::string> image{};  // as in LaunchRequest::image
  std::vector<std::string> tags{};
  // Resources that each point reserves on its server; it waits until they are free. `wait` has no effect.
  LeaseRequest lease{};
  // Maximum number of points that run on a server at once. nullopt: one, or with a lease as many as fit;
  // under Slurm, up to Slurm.
  std::optional<int> slots{};
  int retry = 0;  // how often a failed point is retried; not under Slurm
  std::string name{};
  std::string note{};
  bool enable_stacks = false;  // as in JobRequest
  bool check = true;           // as in JobRequest
};

// What a sweep would run.
struct SweepPlan {
  std::vector<SweepRow> points;
  std::vector<std::string> commands;  // of the points, with secrets masked
  std::vector<std::string> servers;
};

struct SweepStarted {
  JobId launch;                      // Job::launch of the points
  std::vector<Job> jobs;             // the points started by this call, by number
  std::vector<std::string> servers;  // the participating servers; the first one hands out the points
  std::vector<Error> errors;         // servers that do not take part, with the reason
};

// Not under Slurm: continues a sweep with the points that did not end by themselves: waiting, killed or lost.
struct ResumeRequest {
  std::string launch = "last";  // as named in History
  bool failed = false;          // also rerun failed points
  // Also rerun points whose server does not answer. They may still be running there: then a point runs twice.
  bool unknown = false;
};

// The number to compare points by.
struct SweepBest {
  std::string name{};  // "": the loss printed by most points
  bool lowest = true;
};
// Parses "min:loss", "max:acc". Throws Error (usage).
SweepBest parse_sweep_best(const std::string& text);

struct SweepResults {
  JobId launch;
  std::vector<std::string> parameters;
  std::vector<std::string> numbers;  // the names printed by any point
  std::vector<Job> points;           // the newest job of each point, by number
  std::optional<SweepBest> best_by;  // nullopt: no point has that number
  std::optional<std::size_t> best;   // by index
};
// The last number with this name that a point printed; nullptr: none.
const double* sweep_number(const Job& job, const std::string& name);
// For all jobs of a sweep, in any order.
SweepResults sweep_results(const std::vector<Job>& jobs, const SweepBest& by = {});

}  // namespace remote
