#include "cli/show/why.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"

namespace remote::cli {
namespace {

std::size_t total(const Why& why) {
  std::size_t count = 0;
  for (const WhyGroup& group : why.groups) {
    for (const RankLook& rank : group.ranks) {
      count += rank.pid == 0 ? static_cast<std::size_t>(ranks_of(rank.job)) : 1;
    }
  }
  return count;
}

// "rank 2 on node-2", "ranks 0-1, 3 on node-1, node-2", "job 4 on node-1"
std::string who(const WhyGroup& group) {
  std::vector<int> numbers;
  std::vector<Job> jobs;
  const bool are_ranks = group.ranks.front().rank.has_value();
  for (const RankLook& rank : group.ranks) {
    jobs.push_back(rank.job);
    for (int i = 0; i < (rank.pid == 0 ? ranks_of(rank.job) : 1); ++i) {
      numbers.push_back(rank.rank ? *rank.rank + i : rank.job.key);
    }
  }
  const bool one = numbers.size() == 1;
  const char* word = are_ranks ? (one ? "rank" : "ranks") : (one ? "job" : "jobs");
  return fmt::format("{} {} on {}", word, ranges(std::move(numbers)), server_names(jobs));
}

std::string place(const RankLook& rank) {
  if (rank.function.empty()) {
    return "";
  }
  const std::string file = rank.file.substr(rank.file.rfind('/') + 1);
  return visible_line(fmt::format(" in {} ({}:{})", rank.function, file, rank.line));
}

// "waits in all_reduce (train.py:9)"; `many` for several ranks
std::string does(const RankLook& rank, bool many) {
  const auto verb = [&](const char* one, const char* several) {
    return std::string(many ? several : one) + place(rank);
  };
  switch (rank.doing) {
    case RankDoing::computing:
      return verb("computes", "compute");
    case RankDoing::collective:
    case RankDoing::meeting:
    case RankDoing::peer:
    case RankDoing::waiting:
      return verb("waits", "wait");
    case RankDoing::data:
      return verb("waits for data", "wait for data");
    case RankDoing::lock:
      return verb("waits for a lock", "wait for a lock");
    case RankDoing::sleeping:
      return verb("sleeps", "sleep");
    case RankDoing::network:
      return verb("waits for the network", "wait for the network");
    case RankDoing::event:
      return verb("waits for an event (poll)", "wait for events (poll)");
    case RankDoing::pipe_empty:
      return verb("waits for a pipe", "wait for a pipe");
    case RankDoing::pipe_full:
      return verb("writes into a full pipe", "write into a full pipe");
    case RankDoing::child:
      return verb("waits for a process that it started", "wait for processes that they started");
    case RankDoing::stopped:
      return verb("is stopped by a signal", "are stopped by a signal");
    case RankDoing::traced:
      return verb("is held by a debugger", "are held by a debugger");
    case RankDoing::storage:
      return verb("waits for a file system", "wait for a file system");
    case RankDoing::kernel: {
      const std::string where = fmt::format(" in the kernel ({})", visible_line(rank.kernel));
      return verb(("waits" + where).c_str(), ("wait" + where).c_str());
    }
    case RankDoing::throttled:
      return verb("is throttled by its control group", "are throttled by their control groups");
    case RankDoing::ended:
      return fmt::format("{} ended{}", many ? "have" : "has",
                         is_final(rank.job.state)
                             ? fmt::format(" ({})", rank.job.result && rank.job.state != JobState::killed
                                                        ? rank.job.result->describe()
                                                        : state_text(rank.job))
                             : "");
    case RankDoing::unreachable:
      return "cannot be seen: no answer from the server";
  }
  return "";
}

// The evidence for an odd rank: "no processor time in 5.0 s; no output for 4m 00s"
std::string proof(const RankLook& rank, double seconds) {
  if (rank.pid == 0) {
    return "";
  }
  std::vector<std::string> parts;
  if (rank.doing == RankDoing::pipe_full && rank.pipe_fd >= 0) {
    parts.push_back(rank.pipe_reader > 0 ? fmt::format("descriptor {}; PID {} does not read it", rank.pipe_fd,
                                                       rank.pipe_reader)
                                         : fmt::format("descriptor {}", rank.pipe_fd));
  }
  if (rank.throttled >= 0.05) {
    parts.push_back(fmt::format("its control group withheld the processor for {:.0f}% of the time",
                                std::min(1.0, rank.throttled) * 100));
  }
  if (rank.cpu < 0.005) {
    parts.push_back(fmt::format("it used no processor time in {:.1f} s", seconds));
  } else {
    parts.push_back(fmt::format("it used {:.2f} processors", rank.cpu));
  }
  if (rank.cpu_wait >= 0.2) {
    parts.push_back(fmt::format("it waited for a free processor for {:.0f}% of the time",
                                std::min(1.0, rank.cpu_wait) * 100));
  }
  if (rank.silent && rank.silent->count() >= 60) {
    parts.push_back("no output for " + format_duration(*rank.silent));
  }
  return join(parts, "; ");
}

std::string line_of(const WhyGroup& group, double seconds) {
  std::string text = who(group) + " " + does(group.ranks.front(), group.ranks.size() > 1);
  if (group.odd && group.ranks.size() == 1) {
    if (const std::string more = proof(group.ranks.front(), seconds); !more.empty()) {
      text += ": " + more;
    }
  }
  return text;
}

// "3 of 4 ranks wait in all_reduce (train.py:9)"
std::string crowd(const Why& why, const WhyGroup& group) {
  const std::size_t all = total(why);
  const std::size_t count = group.ranks.size();
  const char* word = group.ranks.front().rank ? "ranks" : "jobs";
  if (count == 1) {
    return line_of(group, why.between.count());
  }
  const std::string head =
      count == all ? fmt::format("all {} {}", all, word) : fmt::format("{} of {} {}", count, all, word);
  return head + " " + does(group.ranks.front(), true);
}

std::string rank_words(const std::vector<int>& numbers) {
  return (numbers.size() == 1 ? "rank " : "ranks ") + ranges(numbers);
}

// "all_reduce of Float 3x4"
std::string call_words(const WhyCollective::Call& call) {
  const std::string of = call.types.empty() ? "" : " of " + call.types;
  return visible_line(call.function + of + (call.shapes.empty() ? "" : " " + call.shapes));
}

// The flight recorder's result, as a line.
std::string collective_line(const WhyCollective& one) {
  std::vector<std::string> parts;
  for (const WhyCollective::Call& call : one.calls) {
    parts.push_back(fmt::format("{} {} {}", rank_words(call.ranks),
                                call.ranks.size() == 1 ? "is in" : "are in", call_words(call)));
  }
  if (!one.missing.empty()) {
    parts.push_back(
        fmt::format("{} did not come (the last was {})", rank_words(one.missing), one.last_of_missing));
  }
  return fmt::format("collective {} of process group {}: {}", one.number, visible_line(one.group),
                     join(parts, "; "));
}

std::vector<std::string> findings(const Why& why) {
  std::vector<std::string> lines;
  std::ranges::transform(why.collectives, std::back_inserter(lines), collective_line);
  for (const WhyServer& server : why.servers) {
    if (server.storage_hangs) {
      lines.push_back(fmt::format("the project's file system on {} does not answer", server.server));
    }
    if (server.full_disk) {
      lines.push_back(
          fmt::format("the disk of {} on {} is full", visible_line(server.full_disk->path), server.server));
    }
    if (!server.lifeline.empty()) {
      lines.push_back(fmt::format("the lifeline of {}: {}", server.server, visible_line(server.lifeline)));
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> why_lines(const Why& why) {
  std::vector<std::string> lines;
  std::vector<std::string> odd;
  std::vector<std::string> rest;
  for (const WhyGroup& group : why.groups) {
    (group.odd ? odd : rest).push_back(group.odd ? line_of(group, why.between.count()) : crowd(why, group));
  }
  std::ranges::reverse(rest);  // largest first
  if (why.kept) {
    lines.push_back(fmt::format("as it was at {}, after {} without progress:",
                                format_local_time(why.kept->at), format_duration(why.kept->stood)));
  }
  switch (why.kind) {
    case WhyKind::moving:
      lines.emplace_back("no rank hangs");
      break;
    case WhyKind::slow:
      lines.push_back(
          fmt::format("the launch makes progress, but one rank needs {:.1f} times as much time as the others",
                      why.factor));
      break;
    case WhyKind::mismatch:
      lines.emplace_back("the ranks wait in different collectives, so none of them can finish");
      break;
    case WhyKind::link:
      for (const WhyLink& link : why.links) {
        lines.push_back(fmt::format("{} gets no answer from {}", link.server, link.to));
      }
      break;
    case WhyKind::same_place:
      lines.emplace_back("all ranks wait at the same place, and nothing differs between them");
      break;
    case WhyKind::unknown:
      lines.emplace_back("the reason is unknown");
      break;
    case WhyKind::held_up:
    case WhyKind::ended:
    case WhyKind::standing:
      break;
  }
  // If some ranks hold up the others: first the waiting ranks, then those that they wait for.
  lines.insert(lines.end(), rest.begin(), rest.end());
  lines.insert(lines.end(), odd.begin(), odd.end());
  const std::vector<std::string> more = findings(why);
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

std::vector<std::string> why_evidence(const Why& why) {
  std::vector<std::string> lines;
  for (const WhyGroup& group : why.groups) {
    for (const RankLook& rank : group.ranks) {
      std::string text = who({{rank}});
      if (rank.pid > 0) {
        text += fmt::format(", PID {}: {}{}; {:.2f} processors, {:.2f} waited for", rank.pid,
                            to_string(rank.doing), place(rank), rank.cpu, rank.cpu_wait);
        text += rank.throttled > 0 ? fmt::format(", {:.2f} withheld", rank.throttled) : "";
        text += rank.kernel.empty() ? "" : "; kernel " + rank.kernel;
        text += rank.moved ? "; moved" : "; did not move";
        text += rank.job.wrote_nothing ? "; no output yet"
                : rank.silent          ? fmt::format("; last output {} ago", format_duration(*rank.silent))
                                       : "";
        text += rank.no_stack.empty() ? "" : "; no stack: " + visible_line(rank.no_stack);
      } else {
        text += " " + does(rank, false);
      }
      lines.push_back(std::move(text));
    }
  }
  for (const WhyServer& server : why.servers) {
    if (server.gpu_use) {
      lines.push_back(fmt::format("{}: GPUs busy {:.0f}% of the time", server.server, *server.gpu_use));
    }
  }
  return lines;
}

std::string why_next(const Why& why) {
  if (why.groups.empty()) {
    return "";
  }
  const RankLook& first = why.groups.front().ranks.front();
  int key = first.job.key;  // a launch is identified by its first key
  for (const WhyGroup& group : why.groups) {
    key = std::min(
        key, std::ranges::min(group.ranks, {}, [](const RankLook& rank) { return rank.job.key; }).job.key);
  }
  const std::string which = fmt::format("--{} {}", first.job.launch ? "launch" : "job", key);
  if (why.kept && is_final(first.job.state)) {
    return "remote job-tail " + which;
  }
  for (const WhyServer& server : why.servers) {
    if (server.full_disk) {
      return fmt::format("remote run --server {} --cmd 'df -h .'", server.server);
    }
  }
  if (why.kind == WhyKind::link) {
    return "remote check";
  }
  if (why.kind == WhyKind::moving) {
    return "remote job-tail " + which;
  }
  switch (first.doing) {
    case RankDoing::stopped:
      return fmt::format("remote run --server {} --cmd 'kill -CONT {}'", first.job.server, first.pid);
    case RankDoing::ended:
      return fmt::format("remote job-tail --job {}", first.job.key);
    case RankDoing::unreachable:
      return "remote check --server " + first.job.server;
    case RankDoing::storage:
      return "remote check";
    default:
      return "remote job-stacks --threads " + which;
  }
}

static nlohmann::ordered_json group_json(const WhyGroup& group) {
  const RankLook& one = group.ranks.front();
  nlohmann::ordered_json value = {{"odd", group.odd},         {"doing", to_string(one.doing)},
                                  {"function", one.function}, {"file", one.file},
                                  {"line", one.line},         {"ranks", nlohmann::ordered_json::array()}};
  for (const RankLook& rank : group.ranks) {
    value["ranks"].push_back({{"rank", or_null(rank.rank)},
                              {"job", rank.job.key},
                              {"server", rank.job.server},
                              {"state", to_string(rank.job.state)},
                              {"pid", rank.pid},
                              {"moved", rank.moved},
                              {"cpu", rank.cpu},
                              {"cpu_wait", rank.cpu_wait},
                              {"throttled", rank.throttled},
                              {"kernel", rank.kernel},
                              {"no_stack", rank.no_stack},
                              {"silent_s", count_or_null(rank.silent)}});
    if (rank.pipe_fd >= 0) {
      value["ranks"].back()["pipe"] = {{"fd", rank.pipe_fd}, {"reader", rank.pipe_reader}};
    }
  }
  return value;
}

nlohmann::ordered_json why_json(const Why& why) {
  nlohmann::ordered_json all = {
      {"kind", to_string(why.kind)},
      {"factor", why.kind == WhyKind::slow ? nlohmann::json(why.factor) : nlohmann::json()},
      {"seconds", why.between.count()},
      {"as_of", why.kept ? nlohmann::json(format_utc(why.kept->at)) : nlohmann::json()},
      {"hung_s", why.kept ? nlohmann::json(why.kept->stood.count()) : nlohmann::json()},
      {"text", why_lines(why)},
      {"next", why_next(why)},
      {"groups", nlohmann::ordered_json::array()},
      {"links", nlohmann::ordered_json::array()},
      {"servers", nlohmann::ordered_json::array()},
      {"errors", nlohmann::ordered_json::array()}};
  for (const WhyGroup& group : why.groups) {
    all["groups"].push_back(group_json(group));
  }
  for (const WhyLink& link : why.links) {
    all["links"].push_back({{"server", link.server}, {"to", link.to}});
  }
  all["collectives"] = nlohmann::ordered_json::array();
  for (const WhyCollective& one : why.collectives) {
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();
    for (const WhyCollective::Call& call : one.calls) {
      calls.push_back({{"function", call.function},
                       {"types", call.types},
                       {"shapes", call.shapes},
                       {"ranks", call.ranks}});
    }
    all["collectives"].push_back({{"kind", to_string(one.kind)},
                                  {"group", one.group},
                                  {"number", one.number},
                                  {"calls", std::move(calls)},
                                  {"missing", one.missing}});
  }
  for (const WhyServer& server : why.servers) {
    all["servers"].push_back(
        {{"server", server.server},
         {"full_disk", server.full_disk ? nlohmann::json(server.full_disk->path) : nlohmann::json()},
         {"storage_hangs", server.storage_hangs},
         {"lifeline", server.lifeline},
         {"gpu_use", or_null(server.gpu_use)}});
  }
  for (const Error& error : why.errors) {
    nlohmann::ordered_json value;
    put_error(value, error);
    value["server"] = error.server();
    all["errors"].push_back(std::move(value));
  }
  return all;
}

}  // namespace remote::cli
