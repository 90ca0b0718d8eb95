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

// A sweep: one command for many values of its parameters, a job a point, which its servers take one after the
// other without this program. All of these are plain values.

namespace remote {

// A sweep of more is an Error (usage).
inline constexpr std::size_t most_sweep_points = 10000;

struct SweepParameter {
  std::string name;  // letters, digits and '_', no digit first
  std::vector<std::string> values;
};

// "lr=1e-3,1e-4", "seed=0..4" (0, 1, 2, 3, 4), and both mixed. Throws Error (usage).
SweepParameter parse_sweep_parameter(const std::string& text);
// The rows of a CSV text whose first line names the parameters. Throws Error (usage), which names the line.
using SweepRow = std::vector<std::pair<std::string, std::string>>;
std::vector<SweepRow> parse_sweep_rows(const std::string& csv);
// The points: each row (or one without values, where there is none) with each combination of the parameters,
// of which the last one changes first. Throws Error (usage) for none, too many, or a name that stands twice.
std::vector<SweepRow> sweep_points(const std::vector<SweepParameter>& parameters,
                                   const std::vector<SweepRow>& rows);
// A word of the command with `{name}` replaced by the point's value; `{{` and `}}` are braces. Throws Error
// (usage) for an unknown name.
std::string fill_sweep_word(const std::string& word, const SweepRow& point);
// Whether this is a point that began nowhere, as far as is known here.
inline bool waits_for_turn(const Job& job) {
  return job.point && job.point->waiting && !is_final(job.state);
}
// "lr=1e-4 seed=2"
std::string sweep_point_text(const SweepRow& point);
// The variable that a parameter's value is in: "SWEEP_LR".
std::string sweep_variable(std::string_view parameter);

struct SweepRequest {
  // The command: words, of which each is filled in and then stands exactly so. Or one line for the server's
  // shell, in which only values of harmless characters are put.
  std::vector<std::string> words{};
  std::string line{};
  std::vector<SweepParameter> parameters{};
  std::vector<SweepRow> rows{};
  std::vector<std::string> servers{};  // names or globs; none: all
  Env env{};
  std::optional<std::string> image{};  // as LaunchRequest::image
  std::vector<std::string> tags{};
  // What each point has for itself on its server, which it waits for. `wait` has no effect.
  LeaseRequest lease{};
  // How many points run on a server at the same time. nullopt: one, or with a lease as many as there is room
  // for; under Slurm as many as it runs.
  std::optional<int> slots{};
  int retry = 0;  // how often a point that failed runs again; not under Slurm
  std::string name{};
  std::string note{};
  bool enable_stacks = false;  // as JobRequest::enable_stacks
  bool check = true;           // as JobRequest::check
};

// What a sweep would run.
struct SweepPlan {
  std::vector<SweepRow> points;
  std::vector<std::string> commands;  // of the points, with secrets masked
  std::vector<std::string> servers;
};

struct SweepStarted {
  JobId launch;                      // Job::launch of the points
  std::vector<Job> jobs;             // the points that were started now, by number
  std::vector<std::string> servers;  // that take part; the first one gives out the points
  std::vector<Error> errors;         // servers that do not take part, and why
};

// Not under Slurm: goes on with the points of a sweep that have not ended by themselves: that wait, or were
// killed or lost.
struct ResumeRequest {
  std::string launch = "last";  // as History names it
  bool failed = false;          // those that failed, too
  // Those whose server does not answer, too. They may still run there: then a point runs twice.
  bool unknown = false;
};

// By which number points are compared.
struct SweepBest {
  std::string name{};  // "": the loss that most points have printed
  bool lowest = true;
};
// "min:loss", "max:acc". Throws Error (usage).
SweepBest parse_sweep_best(const std::string& text);

struct SweepResults {
  JobId launch;
  std::vector<std::string> parameters;
  std::vector<std::string> numbers;  // the names that points have printed
  std::vector<Job> points;           // the newest job of each point, by number
  std::optional<SweepBest> best_by;  // nullopt: there is no such number
  std::optional<std::size_t> best;   // by index
};
// The number of this name that a point printed last; nullptr: none.
const double* sweep_number(const Job& job, const std::string& name);
// Of all jobs of a sweep, in any order.
SweepResults sweep_results(const std::vector<Job>& jobs, const SweepBest& by = {});

}  // namespace remote
