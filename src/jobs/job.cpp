#include "jobs/job.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace remote::jobs {
namespace {

constexpr std::array<std::pair<State, std::string_view>, 7> state_names{{
    {State::starting, "starting"},
    {State::running, "running"},
    {State::succeeded, "succeeded"},
    {State::failed, "failed"},
    {State::killed, "killed"},
    {State::lost, "lost"},
    {State::unknown, "unknown"},
}};

}  // namespace

std::string_view to_string(State state) {
  for (const auto& [value, name] : state_names) {
    if (value == state) {
      return name;
    }
  }
  return "unknown";
}

std::optional<State> parse_state(std::string_view text) {
  for (const auto& [value, name] : state_names) {
    if (name == text) {
      return value;
    }
  }
  return std::nullopt;
}

bool is_final(State state) {
  return state == State::succeeded || state == State::failed || state == State::killed ||
         state == State::lost;
}

bool valid_job_id(std::string_view id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool Job::has_tag(std::string_view tag) const {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

}  // namespace remote::jobs
