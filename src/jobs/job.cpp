#include <algorithm>
#include <array>

#include <remote/job.hpp>

#include "base/random.hpp"

namespace remote {
namespace {

// In the order of the states.
constexpr std::array<std::string_view, 8> state_names{"starting", "queued", "running", "succeeded",
                                                      "failed",   "killed", "lost",    "unknown"};

}  // namespace

std::string_view to_string(JobState state) {
  return state_names.at(static_cast<std::size_t>(state));
}

std::optional<JobState> parse_job_state(std::string_view name) {
  const auto found = std::ranges::find(state_names, name);
  return found == state_names.end() ? std::nullopt
                                    : std::optional(static_cast<JobState>(found - state_names.begin()));
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
  return std::ranges::find(tags, tag) != tags.end();
}

}  // namespace remote
