#include "project/one_by_one.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"

namespace remote::project {
namespace {

// A script that died between two ranks leaves an incomplete launch. If no rank was added for this long, the
// next one belongs to a new run.
constexpr std::chrono::hours most_between_ranks{1};

std::string value_of(const Env& env, std::string_view name) {
  const auto found =
      std::ranges::find(env.rbegin(), env.rend(), name, &Env::value_type::first);  // the last one counts
  return found == env.rend() ? "" : found->second;
}

// If the same variables are used again, that is another run: `number` counts them.
JobId launch_id(const Env& env, int number) {
  Sha256 digest;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RUN_UUID"}) {
    digest.add_field(value_of(env, name));
  }
  digest.add_field(std::to_string(number));
  return *JobId::parse(digest.hex().substr(0, 32));
}

bool takes(const std::vector<Job>& ranks, int rank) {
  return std::ranges::none_of(ranks, [&](const Job& job) { return job.rank == rank; }) &&
         now_seconds() - std::ranges::max(ranks, {}, &Job::created_at).created_at <= most_between_ranks;
}

}  // namespace

void join_launch(Core& core, const Env& env, Job& job) {
  const auto rank = parse_number<int>(value_of(env, "RANK"));
  const auto world_size = parse_number<int>(value_of(env, "WORLD_SIZE"));
  if (!rank || !world_size || *rank < 0 || *rank >= *world_size || value_of(env, "MASTER_ADDR").empty() ||
      value_of(env, "MASTER_PORT").empty()) {
    return;
  }
  job.rank = rank;
  job.world_size = world_size;
  const std::vector<Job> stored = stored_jobs(core);
  std::optional<JobId> newest;
  for (int number = 0;; ++number) {
    job.launch = launch_id(env, number);
    std::vector<Job> ranks;
    std::ranges::copy_if(stored, std::back_inserter(ranks),
                         [&](const Job& other) { return other.launch == job.launch; });
    if (ranks.empty()) {
      job.launch = newest.value_or(*job.launch);
      return;
    }
    newest = takes(ranks, *rank) ? job.launch : std::nullopt;
  }
}

}  // namespace remote::project
