#include "jobs/sweep.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <utility>

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/job_ids.hpp"
#include "jobs/keep_program.hpp"
#include "jobs/link_tokens.hpp"
#include "wire/cbor.hpp"

namespace remote::jobs {
namespace {

constexpr std::chrono::seconds sweep_timeout{60};

wire::SweepPoints to_wire(const RemoteFolder& folder, const SweepPoints& points) {
  JobSpecs specs = make_specs(folder, points.requests, points.lease.has_value());
  return {.spec = std::move(specs.common),
          .own = std::move(specs.own),
          .slots = points.slots,
          .lease = points.lease,
          .retry = points.retry};
}

}  // namespace

void begin_sweep(const AnyAgent& agent, const RemoteFolder& folder, const std::string& own,
                 const SweepRun& run, const SweepPoints* points, const std::vector<JobId>& busy) {
  wire::SweepToBegin sweep{.place = to_place(folder),
                           .program = server_program(),
                           .launch = run.launch.text(),
                           .run = {.own = own,
                                   .servers = run.servers,
                                   .tokens = select_link_tokens(run.tokens, run.servers, own),
                                   .address = run.address,
                                   .port = run.port,
                                   .points = run.ids,
                                   .busy = to_texts(busy)}};
  if (points != nullptr) {
    sweep.points = to_wire(folder, *points);
  }
  const wire::Bytes bytes = wire::encode(sweep);
  if (bytes.size() > wire::max_start_text) {
    throw Error::usage("cannot start the sweep",
                       "the commands and variables of its points have more than 16 MB",
                       "put large values into a file of the project");
  }
  const servers::AgentQuestion question{.what = "start of a sweep",
                                        .request = wire::BeginSweepRequest{},
                                        .data = {bytes.begin(), bytes.end()},
                                        .timeout = sweep_timeout,
                                        .watchful = true};
  servers::take_reply<wire::BeginSweepReply>(agent.ask(question));
}

SweepAnswer ask_sweep(const AnyAgent& agent, const RemoteFolder& folder, const SweepQuestion& question) {
  const std::set<JobId> waiting(question.waiting.begin(), question.waiting.end());
  const std::set<JobId> tails(question.tails.begin(), question.tails.end());
  const auto find = [](const std::set<JobId>& asked, const std::string& text) {
    const auto id = JobId::parse(text);
    return id && asked.contains(*id) ? id : std::nullopt;
  };
  SweepAnswer answer;
  agent.ask({.what = "a sweep",
             .request = wire::SweepRequest{.place = to_place(folder),
                                           .launch = question.launch.text(),
                                           .ask = question.ask,
                                           .waiting = to_texts(question.waiting),
                                           .tails = to_texts(question.tails)},
             .timeout = sweep_timeout},
            [&](wire::Reply reply) {
              auto part = servers::take_reply<wire::SweepReply>(std::move(reply));
              answer.runner = part.runner;
              answer.note = part.note.empty() ? answer.note : part.note;
              for (wire::GivenPoint& given : part.given) {
                if (const auto id = find(waiting, given.point)) {
                  answer.given[*id] = std::move(given.server);
                }
              }
              for (const std::string& begun : part.begun) {
                if (const auto id = find(waiting, begun)) {
                  answer.begun.push_back(*id);
                }
              }
              if (const auto id = find(tails, part.tail_of.value_or(""))) {
                answer.tails[*id] = std::move(part.tail);
              }
            });
  return answer;
}

}  // namespace remote::jobs
