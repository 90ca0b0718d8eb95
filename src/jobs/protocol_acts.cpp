#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "jobs/protocol.hpp"

// Reading what the scripts answer when jobs are started, ended, removed and followed.

namespace remote::jobs {

using servers::AnswerLine;

namespace {

// "KIND ID OUTCOME …", up to the outcome.
template <typename Reply>
Reply begin_reply(AnswerLine& line, std::string_view kind,
                  std::initializer_list<std::pair<std::string_view, typename Reply::Outcome>> outcomes) {
  if (line.kind() != kind) {
    line.refuse_kind();
  }
  Reply reply;
  reply.id = id_word(line);
  reply.outcome = line.choice<typename Reply::Outcome>(line.word(), outcomes, "an unknown outcome");
  return reply;
}

}  // namespace

void StartAnswer::take(AnswerLine& line) {
  using enum StartReply::Outcome;
  auto reply = begin_reply<StartReply>(
      line, "start", {{"started", started}, {"queued", queued}, {"exists", exists}, {"failed", failed}});
  if (const std::string_view pid = line.word(); pid != "-") {
    reply.pid = line.number_in(pid, 1);
  }
  if (reply.outcome == failed || reply.outcome == queued) {
    reply.reason = line.rest();
    if (reply.pid) {
      line.refuse("a pid of nothing");
    }
  }
  line.end();
  jobs.push_back(std::move(reply));
}

void KillAnswer::take(AnswerLine& line) {
  using enum KillResult::Entry::Outcome;
  if (line.kind() == "survivor") {
    const JobId id = id_word(line);
    const auto reply = std::ranges::find(jobs, id, &KillReply::id);
    if (reply == jobs.end() || reply->outcome != survivors) {
      line.refuse("a survivor of nothing");
    }
    const std::string_view member = line.word();
    if (!line.more() && member.find(':') != std::string_view::npos) {
      reply->survivors.emplace_back(member);  // no process, but "slurm:123" or the like
      return;
    }
    const int pid = line.number_in(member, 1);
    const std::string_view state = line.word();
    const std::string_view user = line.word();
    reply->survivors.push_back(fmt::format("pid {} ({}, user {}, state {})", pid, line.rest(), user, state));
    return;
  }
  if (line.kind() == "suspect") {
    const JobId id = id_word(line);
    const auto reply = std::ranges::find(jobs, id, &KillReply::id);
    if (reply == jobs.end()) {
      line.refuse("a suspect of nothing");
    }
    const int pid = line.number(1);
    const std::string why = with_blanks(line.word());
    const std::string_view state = line.word();
    const std::string_view user = line.word();
    reply->suspects.push_back(
        fmt::format("pid {} ({}, user {}, state {}): {}", pid, line.rest(), user, state, why));
    return;
  }
  if (line.kind() != "kill") {
    status.take(line);
    return;
  }
  auto reply = begin_reply<KillReply>(
      line, "kill",
      {{"killed", killed}, {"ended", ended}, {"none", none}, {"survivors", survivors}, {"refused", refused}});
  reply.signalled = line.number(0);
  if (reply.outcome == refused) {
    reply.reason = line.rest();
  }
  line.end();
  jobs.push_back(std::move(reply));
}

void CleanAnswer::take(AnswerLine& line) {
  using enum CleanReply::Outcome;
  auto reply = begin_reply<CleanReply>(
      line, "clean", {{"removed", removed}, {"none", none}, {"running", running}, {"failed", failed}});
  reply.reason = line.rest();
  if (reply.gone() != reply.reason.empty()) {
    line.refuse("a reason is wrong");
  }
  jobs.push_back(std::move(reply));
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_follow(std::string_view text) {
  if (!text.starts_with(servers::answer_mark)) {
    return std::nullopt;
  }
  AnswerLine line(text);
  if (line.kind() == "error") {
    throw Error("the server refused", line.rest()).mended_by(Remedy::check_server);
  }
  if (line.kind() != "follow") {
    line.refuse_kind();
  }
  const auto out = line.number<std::uint64_t>(0);
  const auto err = line.number<std::uint64_t>(0);
  line.end();
  return std::pair{out, err};
}

}  // namespace remote::jobs
