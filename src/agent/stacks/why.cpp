#include "agent/stacks/why.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "agent/facts/facts.hpp"
#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/own_python.hpp"
#include "agent/job/report.hpp"
#include "agent/stacks/connections.hpp"
#include "agent/stacks/launch_sample.hpp"
#include "agent/stacks/looker.hpp"
#include "agent/stacks/stacks.hpp"
#include "agent/stacks/waiting.hpp"
#include "base/strings.hpp"
#include "wire/json_text.hpp"
#include "wire/read_json.hpp"

namespace remote::agent {
namespace {

// Parts are moved, because code for copying facts would make the agent larger.
using TakeWhy = std::function<void(wire::WhyReply&&)>;

constexpr std::size_t most_kept = std::size_t{16} << 20U;
constexpr std::size_t entries_of_part = 1000;

class WhyInspection {
 public:
  WhyInspection(const Host& host, const JobsFolder& folder, const wire::WhyRequest& request, TakeWhy take,
                std::chrono::seconds yield_before = std::chrono::seconds(10))
      : host_(host),
        folder_(folder),
        request_(request),
        take_(std::move(take)),
        yield_before_(yield_before) {}

  void run() {
    wire::WhyReply server;
    server.facts = collect_facts(host_, wire::moment_request(folder_.project.string()), "");
    read_connections(host_, server);
    const bool disks_hang = server.facts->disks_hang;
    take_(std::move(server));
    if (disks_hang) {
      send_sample(0);
      wait(nullptr);
      send_held();
      send_sample(1);
      return;
    }
    Looker alone(host_, folder_, request_.ids, request_.between <= yield_before_);
    // This comes first, because a rank needs time for its dump.
    try_send_flight();
    const StackReader reader(host_, request_.activate);
    // No process is signaled between the samples, because answering the signal would count as work.
    do {
      held_.clear();
      send_stacks(0, reader);
      send_sample(0);
    } while (!wait(&alone));
    send_held();
    send_sample(1);
    send_stacks(1, reader);
  }

 private:
  void send_sample(int number) {
    wire::WhyReply reply;
    reply.number = number;
    reply.sample = take_launch_sample(host_, request_.ids, number == 1);
    if (number == 0) {  // after another process has looked, the time for it counts too
      constexpr std::chrono::seconds shortest{5};
      const auto least = until_.count() == 0 ? request_.between : std::min(request_.between, shortest);
      until_ = std::max<std::chrono::milliseconds>(until_, reply.sample->at + least);
    }
    send(std::move(reply));
  }

  // The first sample is kept until no other process can look before the second one.
  void send(wire::WhyReply reply) {
    if (reply.number == 0 && request_.between > yield_before_) {
      held_.push_back(std::move(reply));
    } else {
      take_(std::move(reply));
    }
  }

  void send_held() {
    for (wire::WhyReply& reply : held_) {
      take_(std::move(reply));
    }
    held_.clear();
  }

  // Waits for the time of the second sample. Returns false if another process has looked in the meantime.
  bool wait(Looker* alone) const {
    for (auto now = read_boot_clock(); now < until_ && !host_.is_cancelled(); now = read_boot_clock()) {
      if (alone != nullptr && until_ - now > yield_before_ && alone->is_asked()) {
        alone->let_other_look();
        return false;
      }
      std::this_thread::sleep_for(std::min(until_ - now, std::chrono::milliseconds(200)));
    }
    return true;
  }

  void send_stacks(int number, const StackReader& reader) {
    const auto jobs = find_job_processes(host_);
    for (const std::string& id : request_.ids) {
      read_job_stacks(host_, folder_, jobs, id, reader, [&](wire::ProcessStack stack) {
        wire::WhyReply reply;
        reply.number = number;
        reply.stacks.push_back(std::move(stack));
        send(std::move(reply));
      });
    }
  }

  // Whether a rank has created a pipe for PyTorch's flight recorder (sitecustomize.py).
  bool has_flight_recorder() const {
    return std::ranges::any_of(request_.ids, [&](const std::string& id) {
      const Path folder = folder_.jobs / id / "flight";
      return std::ranges::any_of(list_names(folder), [&](const std::string& name) {
        const auto info = name.ends_with(".pipe") ? look_at(folder / name) : std::nullopt;
        return info && S_ISFIFO(info->st_mode);
      });
    });
  }

  // If it fails, the answer only lacks the collectives.
  void try_send_flight() const {
    try {
      send_flight();
    } catch (const CannotStart&) {
    } catch (const wire::Malformed&) {
    }
  }

  void send_flight() const {
    const auto python = has_flight_recorder() ? find_own_python(host_, "") : std::nullopt;
    if (!python) {
      return;
    }
    const Descriptor program = hold_text(request_.flight);
    std::vector<std::string> words{"-", folder_.jobs};
    words.insert(words.end(), request_.ids.begin(), request_.ids.end());
    const RunResult result =
        agent::run(host_, {.argv = python->command(words), .max_output = most_kept, .input = program.get()});
    wire::WhyReply reply;
    for (const std::string& line : split(result.out, '\n')) {
      if (auto entry = wire::read_json<wire::FlightEntry>(line)) {
        reply.flight.push_back(std::move(*entry));
      }
      if (reply.flight.size() == entries_of_part) {
        take_(std::move(reply));
        reply = {};
      }
    }
    if (!reply.flight.empty()) {
      take_(std::move(reply));
    }
  }

  const Host& host_;
  const JobsFolder& folder_;
  const wire::WhyRequest& request_;
  TakeWhy take_;
  std::chrono::seconds yield_before_;
  std::vector<wire::WhyReply> held_{};
  std::chrono::milliseconds until_{};
};

}  // namespace

void answer_why(const Host& host, const wire::WhyRequest& request, Stream& stream,
                std::chrono::seconds yield_before) {
  const JobsFolder folder = JobsFolder::of(host, request.place);
  WhyInspection(
      host, folder, request, [&](wire::WhyReply&& reply) { stream.send(std::move(reply)); }, yield_before)
      .run();
}

void answer_kept_why(const Host& host, const wire::KeptWhyRequest& request, Stream& stream) {
  const JobsFolder folder = JobsFolder::of(host, request.place);
  for (const std::string& id : request.ids) {
    wire::KeptWhyReply reply{.hang = read_hung(folder.jobs / id)};
    const auto text = read_job_file(folder.jobs / id / "why", most_kept);
    if (!text || !reply.hang) {
      continue;
    }
    for (const std::string& line : split(*text, '\n')) {
      if (line.starts_with('{') && line.size() <= wire::max_kept_part) {
        reply.part = line;
        stream.send(reply);
        reply.hang.reset();
      }
    }
    if (!reply.hang) {
      return;
    }
  }
  stream.send(wire::KeptWhyReply{});
}

int run_why(int count, char** words) {
  const auto seconds = count < 4 ? std::nullopt : parse_number<int>(words[2]);
  if (!seconds || *seconds < 0 || words[0][0] != '/') {
    return 2;
  }
  const Host host = Host::of_this_process();
  const JobsFolder folder{.project = Path(words[0]).parent_path(), .jobs = words[0]};
  wire::WhyRequest request;
  request.ids.assign(words + 3, words + count);
  request.between = std::chrono::seconds(*seconds);
  request.flight = read_file(Path(words[1]) / "python/flight.py").value_or("");
  std::vector<wire::WhyReply> answer;
  WhyInspection(host, folder, request, [&](wire::WhyReply&& reply) {
    write_whole(STDOUT_FILENO, wire::to_json_text(reply) + "\n");
    answer.push_back(std::move(reply));
  }).run();
  return shows_waiting(answer, request.ids) ? evidence_shows_waiting : 0;
}

}  // namespace remote::agent
