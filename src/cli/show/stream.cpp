#include "cli/show/stream.hpp"

#include <array>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/context.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/prepare_words.hpp"
#include "cli/show/verdict.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

using Json = nlohmann::ordered_json;

Json error_fields(const Error& error, const std::string& hint) {
  return {{"what", error.what_failed()},       {"server", or_null(error.server())},
          {"reason", error.reason()},          {"hint", or_null(hint)},
          {"cause", to_string(error.cause())}, {"usage", error.kind() == ErrorKind::usage}};
}

Json jobs_of(const std::vector<Job>& jobs) {
  Json array = Json::array();
  for (const Job& job : jobs) {
    array.push_back(jobs::to_json(job));
  }
  return array;
}

const char* why_word(LinkLeftOut::Why why) {
  switch (why) {
    case LinkLeftOut::Why::not_allowed:
      return "not_allowed";
    case LinkLeftOut::Why::secret:
      return "secret";
    case LinkLeftOut::Why::nowhere:
      return "nowhere";
    case LinkLeftOut::Why::environment:
      return "environment";
    case LinkLeftOut::Why::circle:
      break;
  }
  return "circle";
}

const char* why_word(UselessPattern::Why why) {
  constexpr std::array words{"negated",  "comment",  "blank",  "quoted",    "dots",
                             "absolute", "sign",     "braces", "backslash", "slashes",
                             "bracket",  "variable", "empty",  "too_long"};
  return words.at(static_cast<std::size_t>(why));
}

const char* cause_word(SweepTrouble::Cause cause) {
  using Cause = SweepTrouble::Cause;
  return cause == Cause::stopped ? "stopped"
         : cause == Cause::gone  ? "gone"
         : cause == Cause::dead  ? "dead"
                                 : "says";
}

const char* cause_word(NoLifeline::Cause cause) {
  using Cause = NoLifeline::Cause;
  switch (cause) {
    case Cause::no_port:
      return "no_port";
    case Cause::no_connection:
      return "no_connection";
    case Cause::dead:
      return "dead";
    case Cause::restarted:
      break;
  }
  return "restarted";
}

// The event's name and its fields; name is nullptr if it is reported in another way.
struct Told {
  const char* name = nullptr;
  Json fields = Json::object();
};

struct Teller {
  const std::vector<std::string>& servers;

  Json server(std::size_t index) const {
    return index < servers.size() ? Json(servers[index]) : Json(nullptr);
  }

  Told operator()(const ConfigWarning& event) const { return {"warning", {{"text", event.text}}}; }
  Told operator()(const StoreProblem& event) const { return {"warning", {{"text", event.text}}}; }
  Told operator()(const LoginProblem& event) const {
    return {"warning",
            {{"text", event.error.message()},
             {"server", or_null(event.error.server())},
             {"cause", to_string(event.error.cause())}}};
  }
  Told operator()(const NewHostKey& event) const {
    return {"host_key",
            {{"server", event.server},
             {"host", event.host},
             {"type", event.type},
             {"fingerprint", event.fingerprint},
             {"warning", or_null(event.warning)}}};
  }
  Told operator()(const SlowLogin& event) const { return {"slow_login", {{"server", event.server}}}; }
  Told operator()(const SilentServers&) const { return {}; }  // one line per error
  Told operator()(const LinkLeftOut& event) const {
    return {"link_left_out", {{"name", event.name}, {"target", event.target}, {"why", why_word(event.why)}}};
  }
  Told operator()(const EnvironmentsLeftOut& event) const {
    return {"environments_left_out", {{"names", event.names}}};
  }
  Told operator()(const UselessPatterns& event) const {
    Json all = Json::array();
    for (const UselessPattern& one : event.patterns) {
      all.push_back({{"text", one.text}, {"line", one.line}, {"why", why_word(one.why)}});
    }
    return {"patterns_without_effect", {{"file", event.file}, {"patterns", std::move(all)}}};
  }
  Told operator()(const UnfetchedFiles& event) const {
    return {"not_fetched", {{"pointers", event.pointers}, {"submodules", event.submodules}}};
  }
  // Reported through Context::show(Error), which prints an error event.
  Told operator()(const PartsFailed&) const { return {}; }
  Told operator()(const LinkLost& event) const {
    return {"link_lost",
            {{"server", event.server},
             {"reason", event.reason},
             {"reached", event.reached},
             {"hint", or_null(event.hint)}}};
  }
  Told operator()(const LinkBack& event) const { return {"link_back", {{"server", event.server}}}; }
  Told operator()(const NoLifeline& event) const {
    Json all = Json::array();
    for (const NoLifeline::Server& one : event.servers) {
      all.push_back(
          {{"server", one.name}, {"cause", cause_word(one.cause)}, {"detail", or_null(one.detail)}});
    }
    return {"no_lifeline", {{"servers", all}, {"for_all", event.for_all}}};
  }
  Told operator()(const SweepTrouble& event) const {
    return {"sweep_trouble",
            {{"key", event.key},
             {"server", event.server},
             {"cause", cause_word(event.cause)},
             {"detail", or_null(event.detail)},
             {"all", event.all}}};
  }
  Told operator()(const RankWaits& event) const {
    return {"rank_waits", {{"job", jobs::to_json(event.job)}, {"wait", event.wait.id}}};
  }
  Told operator()(const JobsQueued& event) const { return {"jobs_queued", {{"jobs", jobs_of(event.jobs)}}}; }
  Told operator()(const GpuCountDiffers& event) const {
    return {"gpu_count_differs",
            {{"server", event.server}, {"expected", event.expected}, {"found", event.found}}};
  }
  Told operator()(const CheckWarned&) const { return {}; }  // one line per server
  Told operator()(const CodeDiffers& event) const {
    return {"code_differs", {{"server", event.server}, {"names", event.names}}};
  }
  Told operator()(const CodeChanged& event) const {
    return {"code_changed",
            {{"servers", event.servers},
             {"names", event.names},
             {"never_sent", event.never_sent},
             {"there", event.there},
             {"gone", event.gone},
             {"by", or_null(event.by)}}};
  }
  Told operator()(const LaunchCode& event) const {
    return {"code",
            {{"commit", or_null(event.commit)},
             {"clean", event.clean},
             {"changed", event.changed},
             {"changed_in", event.changed_in},
             {"untracked", event.untracked},
             {"same", event.same},
             {"different", event.different},
             {"unknown", event.unknown},
             {"gone_here", event.gone_here}}};
  }
  Told operator()(const Launched& event) const {
    const Plan& plan = event.result.plan;
    return {"launched",
            {{"launch", plan.run_id},
             {"launcher", to_string(plan.launcher)},
             {"master_addr", or_null(plan.master_addr)},
             {"master_port", plan.master_port},
             {"world_size", plan.world_size},
             {"jobs", jobs_of(event.result.jobs)}}};
  }
  Told operator()(const SameLaunchRuns& event) const {
    return {"same_launch_runs", {{"key", event.key}, {"servers", event.servers}}};
  }
  Told operator()(const EndingRanks& event) const {
    return {"ending_ranks", {{"failed", event.failed ? Json(event.failed->key) : Json(nullptr)}}};
  }
  Told operator()(const KeyMade& event) const { return {"key_made", {{"file", event.file}}}; }
  Told operator()(const StepBegun& event) const {
    return {
        "step",
        {{"server", server(event.server)}, {"step", step_name(event.step)}, {"other", or_null(event.other)}}};
  }
  Told operator()(const StepDetail& event) const {
    return {"step_detail",
            {{"server", server(event.server)}, {"text", event.text}, {"fraction", or_null(event.fraction)}}};
  }
  Told operator()(const TransferNews& event) const {
    return {"transfer",
            {{"server", server(event.server)},
             {"bytes", event.progress.bytes},
             {"percent", event.progress.percent},
             {"bytes_per_second", event.progress.bytes_per_second}}};
  }
  Told operator()(const ServerPrepared& event) const {
    return {"prepared", {{"server", server(event.server)}}};
  }
  Told operator()(const ServerFailed& event) const {
    const Error error = event.server < servers.size() ? event.error.on(servers[event.server]) : event.error;
    Json fields = error_fields(error, hint_of(error));
    fields["server"] = server(event.server);
    fields["last_lines"] = event.last_lines;
    fields["log"] = or_null(event.log);
    return {"server_failed", std::move(fields)};
  }
};

}  // namespace

void EventStream::print(const char* name, const Json& fields) {
  const ExactInstant now = now_milliseconds();
  const Instant second = std::chrono::floor<std::chrono::seconds>(now);
  std::string time = format_utc(second);
  time.insert(time.size() - 1, fmt::format(".{:03}", (now - second).count()));
  Json event = {{"event", name}, {"time", time}};
  event.update(fields);
  terminal_.out(dump_json_line(event) + "\n");
}

void EventStream::begin(const std::string& command) {
  print("begin", {{"version", version}, {"remote", REMOTE_VERSION}, {"command", command}});
}

void EventStream::take(const Event& event) {
  if (const auto* silent = std::get_if<SilentServers>(&event)) {
    for (const Error& error : silent->errors) {
      print("silent_server", {{"server", or_null(error.server())},
                              {"reason", error.message()},
                              {"cause", to_string(error.cause())}});
    }
  }
  if (const auto* warned = std::get_if<CheckWarned>(&event)) {
    for (const std::string& server : warned->servers) {
      const auto& fix = warned->finding.fix;
      print("check_warned", {{"server", server},
                             {"name", warned->finding.name},
                             {"detail", warned->finding.detail},
                             {"fix", fix ? Json(fix->text) : Json()}});
    }
  }
  if (const Told told = std::visit(Teller{servers_}, event); told.name != nullptr) {
    print(told.name, told.fields);
  }
}

void EventStream::error(const Error& error, const std::string& hint) {
  print("error", error_fields(error, hint));
}

void EventStream::output(const OutputSource& source, OutputStream stream, std::string_view line) {
  Json fields = {{"server", source.server},
                 {"job", or_null(source.key)},
                 {"rank", or_null(source.rank)},
                 {"stream", stream == OutputStream::out ? "out" : "err"},
                 {"text", std::string(line)}};
  if (!source.ranks.empty()) {
    fields["ranks"] = source.ranks;
  }
  print("output", fields);
}

void EventStream::ended(const Job& job) {
  print("ended", {{"job", jobs::to_json(job)}});
}

void EventStream::verdict(const Verdict& verdict, std::string hint) {
  const bool well = verdict.succeeded == verdict.total || !verdict.left.empty();
  if (hint.empty() && verdict.first) {
    hint = fmt::format("its output: remote job-tail --job {}", verdict.first->key);
  }
  print("verdict",
        {{"total", verdict.total},
         {"succeeded", verdict.succeeded},
         {"ended", verdict.ended},
         {"aborted", verdict.aborted},
         {"killed", verdict.killed},
         {"unknown", verdict.unknown},
         {"first", verdict.first ? jobs::to_json(*verdict.first) : Json(nullptr)},
         {"killed_first", verdict.killed_first ? jobs::to_json(*verdict.killed_first) : Json(nullptr)},
         {"ahead_ms", count_or_null(verdict.ahead)},
         {"last_lines", verdict.last_lines},
         {"lost_server", or_null(verdict.lost_server)},
         {"hung_s", verdict.hung ? Json(verdict.hung->reason.number) : Json(nullptr)},
         {"left", verdict.left},
         {"attempts", jobs::attempts_json(verdict.attempts)},
         {"no_restart", verdict.no_restart ? Json(to_string(*verdict.no_restart)) : Json(nullptr)},
         {"what", well ? Json(nullptr) : Json(verdict_headline(verdict))},
         {"server", verdict.first ? Json(verdict.first->server) : Json(or_null(verdict.lost_server))},
         {"node", verdict.first ? Json(or_null(failed_node(*verdict.first))) : Json(nullptr)},
         {"hint", or_null(hint)}});
}

void EventStream::result(const Json& value) {
  print("result", {{"value", value}});
}

void EventStream::end(int exit_code) {
  print("end", {{"exit_code", exit_code}});
}

}  // namespace remote::cli
