#include <algorithm>
#include <array>
#include <utility>

#include <remote/job.hpp>

#include "base/random.hpp"

namespace remote {
namespace {

constexpr std::array<std::pair<JobState, std::string_view>, 8> state_names{{
    {JobState::starting, "starting"},
    {JobState::queued, "queued"},
    {JobState::running, "running"},
    {JobState::succeeded, "succeeded"},
    {JobState::failed, "failed"},
    {JobState::killed, "killed"},
    {JobState::lost, "lost"},
    {JobState::unknown, "unknown"},
}};

}  // namespace

std::string_view to_string(JobState state) {
  for (const auto& [value, name] : state_names) {
    if (value == state) {
      return name;
    }
  }
  return "unknown";
}

std::optional<JobState> parse_job_state(std::string_view name) {
  for (const auto& [value, known] : state_names) {
    if (known == name) {
      return value;
    }
  }
  return std::nullopt;
}

bool is_final(JobState state) {
  return state == JobState::succeeded || state == JobState::failed || state == JobState::killed ||
         state == JobState::lost;
}

std::optional<JobId> JobId::parse(std::string_view text) {
  JobId id;
  if (text.size() != id.digits_.size() ||
      text.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  std::copy(text.begin(), text.end(), id.digits_.begin());
  return id;
}

JobId JobId::random() {
  return *parse(random_hex(JobId().digits_.size()));
}

bool Job::has_tag(std::string_view tag) const {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

}  // namespace remote
