// Asking servers for two looks at a launch's processes, and reading what they answer.

#include "jobs/why.hpp"

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/protocol.hpp"
#include "servers/python_env.hpp"

namespace remote::jobs {
namespace {

bool is_address(std::string_view text) {
  return (text.size() == 8 || text.size() == 32) &&
         text.find_first_not_of("0123456789ABCDEF") == std::string_view::npos;
}

// An IPv4 address in the form of IPv6 is the IPv4 address.
std::string address_of(servers::AnswerLine& line) {
  constexpr std::string_view mapped = "0000000000000000FFFF0000";
  const std::string_view text = line.word();
  if (!is_address(text)) {
    line.refuse("an address is wrong");
  }
  return std::string(text.starts_with(mapped) ? text.substr(mapped.size()) : text);
}

ProcessState state_of(servers::AnswerLine& line) {
  ProcessState state;
  state.parent = line.number<int>(0);
  const std::string_view letter = line.word();
  if (letter.size() != 1) {
    line.refuse("a state is wrong");
  }
  state.state = letter.front();
  state.ticks = line.number<std::uint64_t>(0);
  if (const std::string_view written = line.word(); written != "-") {
    state.written = line.number_in<std::uint64_t>(written, 0);
  }
  if (std::string kernel = line.name("._-"); kernel != "-") {
    state.kernel = std::move(kernel);
  }
  return state;
}

Flight flight_of(servers::AnswerLine& line) {
  constexpr int most = 1000000000;
  id_word(line);
  Flight flight{.rank = line.number<int>(0, most), .group = line.name("._:-")};
  flight.number = line.number<std::uint64_t>(0);
  flight.completed = line.word() == "completed";
  flight.function = line.name("._:-");
  flight.types = line.name("._:,-");
  flight.shapes = line.name("x,-");
  return flight;
}

// What the servers of these jobs answer to `action_of(place)`. One that fails is one of `errors`.
std::vector<WhySample> samples_of(const Site& site, const std::vector<Job>& jobs, std::vector<Error>& errors,
                                  const auto& action_of) {
  struct Entry {
    Job job;
    WhySample sample;
  };
  auto entries = on_job_servers(site, jobs, errors, [&](ssh::Connection& connection, const JobsAt& place) {
    WhySample sample{place.server, place.jobs, {}};
    sample.answer = servers::run_action(connection, action_of(place), site.cancel);
    sample.answer.facts.check();
    return std::vector<Entry>{{place.jobs.front(), std::move(sample)}};
  });
  std::vector<WhySample> samples;
  std::ranges::transform(entries, std::back_inserter(samples),
                         [](Entry& entry) { return std::move(entry.sample); });
  return samples;
}

}  // namespace

void WhyAnswer::take(servers::AnswerLine& line) {
  const std::string_view kind = line.kind();
  if (servers::FactsAnswer::takes(kind)) {
    facts.take(line);
    return;
  }
  if (of_stacks_ != nullptr && (kind == "process" || kind == "line" || kind == "ended")) {
    of_stacks_->stacks.take(line);
    return;
  }
  if (kind == "look") {
    Look& one = look(line);
    one.at = static_cast<double>(line.number<std::uint64_t>(0)) / 100;
  } else if (kind == "stacks") {
    of_stacks_ = &look(line);
  } else if (kind == "state") {
    Look& one = look(line);
    const int pid = line.pid();
    one.processes[pid] = state_of(line);
  } else if (kind == "rank") {
    Look& one = look(line);
    RankState rank{.id = id_word(line)};
    const int pid = line.pid();
    if (const std::string_view number = line.word(); number != "-") {
      rank.rank = line.number_in(number, 0);
    }
    rank.delay_ns = line.number<std::uint64_t>(0);
    one.ranks[pid] = rank;
  } else if (kind == "throttled") {
    Look& one = look(line);
    const int pid = line.pid();
    one.throttled_us[pid] = line.number<std::uint64_t>(0);
  } else if (kind == "pipe") {
    const int pid = line.pid();
    const int fd = line.number<int>(0);
    const std::string_view reader = line.word();
    pipes[pid] = {fd, reader == "-" ? 0 : line.number_in(reader, 1)};
  } else if (kind == "address") {
    addresses.insert(address_of(line));
  } else if (kind == "silent") {
    silent.insert(address_of(line));
  } else if (kind == "flight") {
    flights.push_back(flight_of(line));
  } else if (kind == "kept") {
    kept.emplace();
    kept->at = line.instant_in<Instant>(line.word());
    kept->stood = std::chrono::seconds(line.number<int>(0));
  } else if (kind == "hangs") {
    hangs = true;
  } else {
    line.refuse_kind();
  }
  line.end();
}

servers::Action<WhyAnswer> why_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                      const std::string& activate, const WhyRequest& request) {
  servers::Action<WhyAnswer> action;
  action.what = "why " + counted(ids.size(), "job");
  action.script = job_script(folder, "actions/why.sh");
  servers::add_facts(action.script, {.parts = {}, .project = folder.project, .activate = activate});
  const std::vector<std::string> words = texts_of(ids);
  const auto with = [&](const char* round) {
    std::vector<std::string> all{round};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  };
  action.script.call("look_for_room")
      .call("why_server")
      .call("why_flight", words)
      .call("stacks_begin")
      .call("why_stacks", with("0"))
      .call("why_look", with("0"))
      .call("why_pause", {std::to_string(request.between.count())})
      .call("why_look", with("1"))
      .call("why_stacks", with("1"))
      .call("say", {"end"});
  action.timeout = std::chrono::minutes(5) + request.between;  // as of stacks
  action.silence = std::chrono::seconds(60) + request.between;
  return action;
}

servers::Action<WhyAnswer> kept_action(const RemoteFolder& folder, const std::vector<JobId>& ids) {
  servers::Action<WhyAnswer> action;
  action.what = "what was kept of " + counted(ids.size(), "job");
  action.script = job_script(folder, "actions/why_kept.sh");
  action.script.call("why_kept", texts_of(ids)).call("say", {"end"});
  action.timeout = std::chrono::minutes(1);
  return action;
}

Why look_why(const Site& site, const std::vector<Job>& jobs, const WhyRequest& request) {
  std::vector<Job> asked;
  std::vector<Job> others;
  for (const Job& job : jobs) {
    if (!is_final(job.state) && is_of_slurm(site.config, job)) {
      throw Error::usage("cannot look into jobs of Slurm for this", "their processes are on its nodes")
          .mended_by(Remedy::read_manual, "slurm");
    }
    const bool skip = is_final(job.state) || job.state == JobState::unknown;
    (skip ? others : asked).push_back(job);
  }
  std::vector<Error> errors;
  const std::vector<WhySample> samples = samples_of(site, asked, errors, [&](const JobsAt& place) {
    const std::string activate = servers::activation(site.config, server_of(site.config, place.jobs.front()));
    return why_action(place.folder, place.ids(), activate, request);
  });
  for (Job& job : asked) {
    if (std::ranges::find(errors, job.server, &Error::server) != errors.end()) {
      job.state = JobState::unknown;
      others.push_back(job);
    }
  }
  Why why = judge(samples, others, now_milliseconds());
  why.errors = std::move(errors);
  return why;
}

Why look_kept(const Site& site, const std::vector<Job>& jobs) {
  std::vector<Error> errors;
  std::vector<WhySample> samples = samples_of(
      site, jobs, errors, [](const JobsAt& place) { return kept_action(place.folder, place.ids()); });
  std::optional<WhyKept> kept;
  std::vector<Job> others;
  for (WhySample& sample : samples) {
    if (!sample.answer.kept) {
      std::ranges::copy(sample.jobs, std::back_inserter(others));
      continue;
    }
    kept = sample.answer.kept;
    for (Job& job : sample.jobs) {
      // by this machine's clock; no line was written since then, or for longer
      kept->at = job.hung ? job.hung->at : kept->at;
      job.failed_at = kept->at - kept->stood;
    }
  }
  std::erase_if(samples, [](const WhySample& sample) { return !sample.answer.kept; });
  if (!kept) {
    throw errors.empty() ? Error::usage("job-why", "nothing was kept of this launch",
                                        "a launch keeps it when it is watched for standing still")
                         : errors.front();
  }
  std::ranges::copy_if(jobs, std::back_inserter(others), [&](const Job& job) {
    return std::ranges::find(errors, job.server, &Error::server) != errors.end();
  });
  for (Job& job : others) {
    job.state = JobState::unknown;  // what it did then is not known
  }
  Why why = judge(samples, others, kept->at);
  why.errors = std::move(errors);
  why.kept = kept;
  return why;
}

}  // namespace remote::jobs
