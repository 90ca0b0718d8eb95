// Takes two samples of a launch's processes on its servers, and parses the answers.

#include "jobs/why.hpp"

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/job_ids.hpp"
#include "jobs/job_servers.hpp"
#include "server/archive.hpp"
#include "servers/python_env.hpp"
#include "wire/json.hpp"

namespace remote::jobs {
namespace {

// Collects the results of `ask(connection, place)` from the servers of these jobs. Failures are added to
// `errors`.
std::vector<WhySample> samples_of(const Site& site, const std::vector<Job>& jobs, std::vector<Error>& errors,
                                  const auto& ask) {
  struct Entry {
    Job job;
    WhySample sample;
  };
  auto entries = on_job_servers(site, jobs, errors, [&](ssh::Connection& connection, const JobsAt& place) {
    WhySample sample{place.server, place.jobs, {}};
    sample.answer = ask(connection, place);
    return std::vector<Entry>{{place.jobs.front(), std::move(sample)}};
  });
  std::vector<WhySample> samples;
  std::ranges::transform(entries, std::back_inserter(samples),
                         [](Entry& entry) { return std::move(entry.sample); });
  return samples;
}

wire::WhyReply read_kept_part(const std::string& text) {
  try {
    return wire::from_json<wire::WhyReply>(wire::Json::parse(text));
  } catch (const std::exception& problem) {  // from nlohmann_json, or wire::Malformed
    throw Error("the evidence of the hang is not understood", problem.what()).mended_by(Remedy::tell_more);
  }
}

}  // namespace

void WhyAnswer::add(wire::WhyReply part) {
  if (part.facts) {
    facts = std::move(*part.facts);
  }
  addresses.merge(part.addresses);
  silent.merge(part.silent);
  std::ranges::move(part.flight, std::back_inserter(flights));
  Look& look = looks.at(static_cast<std::size_t>(part.number));
  if (part.sample) {
    look.at = part.sample->at;
    for (wire::ProcessSample& process : part.sample->processes) {
      look.processes.insert_or_assign(process.pid, std::move(process));
    }
    for (wire::RankSample& rank : part.sample->ranks) {
      look.ranks.insert_or_assign(rank.pid, std::move(rank));
    }
  }
  std::ranges::move(part.stacks, std::back_inserter(look.stacks));
}

WhyAnswer ask_why(const AnyAgent& agent, const RemoteFolder& folder, const std::vector<JobId>& ids,
                  const std::string& activate, const WhyRequest& request) {
  servers::AgentQuestion question;
  question.what = "why " + counted(ids.size(), "job");
  question.request = wire::WhyRequest{to_place(folder), to_texts(ids), activate, request.between,
                                      std::string(server::python_text("flight.py"))};
  question.timeout = std::chrono::minutes(5) + request.between;  // like ask_stacks()
  question.silence = std::chrono::seconds(60);
  WhyAnswer answer;
  agent.ask(question,
            [&](wire::Reply reply) { answer.add(servers::take_reply<wire::WhyReply>(std::move(reply))); });
  return answer;
}

WhyAnswer ask_kept_why(const AnyAgent& agent, const RemoteFolder& folder, const std::vector<JobId>& ids) {
  servers::AgentQuestion question;
  question.what = "evidence of " + counted(ids.size(), "job");
  question.request = wire::KeptWhyRequest{to_place(folder), to_texts(ids)};
  question.timeout = std::chrono::minutes(1);
  WhyAnswer answer;
  agent.ask(question, [&](wire::Reply reply) {
    const auto part = servers::take_reply<wire::KeptWhyReply>(std::move(reply));
    answer.hang = part.hang ? part.hang : answer.hang;
    if (!part.part.empty()) {
      answer.add(read_kept_part(part.part));
    }
  });
  return answer;
}

Why look_why(const Site& site, const std::vector<Job>& jobs, const WhyRequest& request) {
  std::vector<Job> asked;
  std::vector<Job> others;
  for (const Job& job : jobs) {
    if (!is_final(job.state) && is_of_slurm(site.config, job)) {
      throw Error::usage("cannot inspect jobs of Slurm for this", "their processes are on its nodes")
          .mended_by(Remedy::read_manual, "slurm");
    }
    const bool skip = is_final(job.state) || job.state == JobState::unknown;
    (skip ? others : asked).push_back(job);
  }
  std::vector<Error> errors;
  const auto ask = [&](ssh::Connection& connection, const JobsAt& place) {
    const config::Server& server = server_of(site.config, place.jobs.front());
    return ask_why({connection, site.cancel}, place.folder, place.ids(),
                   servers::activation(site.config, server), request);
  };
  const std::vector<WhySample> samples = samples_of(site, asked, errors, ask);
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
  std::vector<WhySample> samples =
      samples_of(site, jobs, errors, [&](ssh::Connection& connection, const JobsAt& place) {
        return ask_kept_why({connection, site.cancel}, place.folder, place.ids());
      });
  std::optional<WhyKept> kept;
  std::vector<Job> others;
  for (WhySample& sample : samples) {
    if (!sample.answer.hang) {
      std::ranges::copy(sample.jobs, std::back_inserter(others));
      continue;
    }
    const Hung hung = to_hung(*sample.answer.hang);
    kept = WhyKept{hung.at, hung.stood};
    for (Job& job : sample.jobs) {
      // In this machine's time. The last output was before failed_at.
      kept->at = job.hung ? job.hung->at : kept->at;
      job.failed_at = kept->at - kept->stood;
    }
  }
  std::erase_if(samples, [](const WhySample& sample) { return !sample.answer.hang; });
  if (!kept) {
    throw errors.empty()
        ? Error::usage("job-why", "nothing was kept of this launch", "a launch with hang detection keeps it")
        : errors.front();
  }
  std::ranges::copy_if(jobs, std::back_inserter(others), [&](const Job& job) {
    return std::ranges::find(errors, job.server, &Error::server) != errors.end();
  });
  for (Job& job : others) {
    job.state = JobState::unknown;  // its state at that time is unknown
  }
  Why why = judge(samples, others, kept->at);
  why.errors = std::move(errors);
  why.kept = kept;
  return why;
}

}  // namespace remote::jobs
