#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <remote/job.hpp>

#include "base/clock.hpp"
#include "base/hashing.hpp"
#include "jobs/job_fields.hpp"
#include "jobs/job_json.hpp"

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

bool is_over(const Job& job) {
  return is_final(job.state) && !job.leftovers;
}

bool has_failed(const Job& job) {
  return job.state == JobState::failed || job.state == JobState::lost;
}

bool has_left(const Job& job) {
  // A server that was cut off for too long. Its job was stopped by its own lifeline, or when the server was
  // back.
  const bool was_lost = job.state == JobState::killed && job.reason.kind == JobReason::Kind::after_loss &&
                        (job.needed || job.reason.text == job.server);
  return job.state == JobState::lost || was_lost ||
         (job.state == JobState::failed && job.ranks && job.result && job.result->signal());
}

int ranks_of(const Job& job) {
  return job.ranks.value_or(1);
}

Instant end_of(const Job& job) {
  return job.ended_at.value_or(job.checked_at.value_or(job.created_at));
}

bool is_final(JobState state) {
  return state == JobState::succeeded || state == JobState::failed || state == JobState::killed ||
         state == JobState::lost;
}

std::optional<JobId> JobId::parse(std::string_view text) {
  JobId id;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != id.digits_.size() || !std::ranges::all_of(text, is_digit)) {
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

namespace jobs {
namespace {

using Kind = JobReason::Kind;

// '#' stands for the number and '*' for the text. Kinds without a sentence are handled below.
struct Sentence {
  Kind kind;
  std::string_view name;
  std::string_view text;
};

constexpr std::array sentences{
    Sentence{Kind::none, "none", ""},
    Sentence{Kind::after_rank, "after_rank", "ended after rank #"},
    Sentence{Kind::after_loss, "after_loss", "ended after the loss of *"},
    Sentence{Kind::after_hang, "after_hang", ""},
    Sentence{Kind::by_user, "by_user", ""},
    Sentence{Kind::by_launch, "by_launch", ""},
    Sentence{Kind::not_needed, "not_needed", "a spare that was not needed"},
    Sentence{Kind::out_of_memory, "out_of_memory", "out of memory"},
    Sentence{Kind::server_out_of_memory, "server_out_of_memory", "the server ran out of memory meanwhile"},
    Sentence{Kind::disk_full, "disk_full", "the disk there was full"},
    Sentence{Kind::quota_used_up, "quota_used_up", "the disk quota there was used up"},
    Sentence{Kind::disk_read_only, "disk_read_only", "the disk there was read-only"},
    Sentence{Kind::by_scheduler, "by_scheduler", "Slurm: *"},
    Sentence{Kind::never_started, "never_started", "never started"},
    Sentence{Kind::not_started, "not_started", "not started: *"},
    Sentence{Kind::no_result, "no_result", "ended without a result"},
    Sentence{Kind::folder_gone, "folder_gone", "its folder is gone from the server"},
    Sentence{Kind::other_machine, "other_machine",
             "another machine answers at the server's address than the one that ran it"},
    Sentence{Kind::processes_gone, "processes_gone", "supervisor and processes are gone"},
    Sentence{Kind::server_restarted, "server_restarted", "server restarted"},
    Sentence{Kind::waiting, "waiting", "waiting: *"},
    Sentence{Kind::told_to_end, "told_to_end", "asked to end, but its process # still runs"},
    Sentence{Kind::unsupervised, "unsupervised", "its supervisor is gone"},
    Sentence{Kind::no_lifeline, "no_lifeline", "no lifeline: *"},
    Sentence{Kind::lifeline_dead, "lifeline_dead", "its lifeline has died: *"},
    Sentence{Kind::lifeline_restarted, "lifeline_restarted", "its lifeline had died and was started again"},
    Sentence{Kind::no_answer, "no_answer", ""},
    Sentence{Kind::other, "other", "*"},
};

const Sentence& sentence_of(Kind kind) {
  return *std::ranges::find(sentences, kind, &Sentence::kind);
}

// Formats "SIGTERM by ada@laptop, then SIGKILL".
std::string stop_text(const JobReason& reason) {
  std::string text = signal_name(reason.number);
  const std::string by = reason.kind == Kind::by_launch ? "launch" : reason.text;
  if (!by.empty()) {
    text += " by " + by;
  }
  if (reason.result) {
    text += (reason.result->signal() ? ", then " : ", ") + reason.result->describe();
  }
  return text;
}

}  // namespace

std::string reason_text(const JobReason& reason) {
  if (reason.kind == Kind::by_user || reason.kind == Kind::by_launch) {
    return stop_text(reason);
  }
  if (reason.kind == Kind::after_hang) {
    return fmt::format("hung: ended after {} without progress",
                       format_duration(std::chrono::seconds(reason.number)));
  }
  if (reason.kind == Kind::no_answer) {
    return reason.last_state ? fmt::format("no answer; last report {} ago: {}",
                                           format_duration(std::chrono::seconds(reason.number)),
                                           to_string(*reason.last_state))
                             : "no answer, and no report yet";
  }
  std::string text(sentence_of(reason.kind).text);
  if (const std::size_t place = text.find_first_of("#*"); place != std::string::npos) {
    text.replace(place, 1, text[place] == '*' ? reason.text : std::to_string(reason.number));
  }
  return text;
}

std::string_view kind_name(JobReason::Kind kind) {
  return sentence_of(kind).name;
}

std::optional<JobReason::Kind> parse_kind(std::string_view name) {
  const auto found = std::ranges::find(sentences, name, &Sentence::name);
  return found == sentences.end() ? std::nullopt : std::optional(found->kind);
}

}  // namespace jobs
}  // namespace remote
