#include "agent/sweep/sweep_supervisor.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "agent/job/answers.hpp"
#include "agent/launch/clock.hpp"
#include "base/format.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using rules::PointStart;

constexpr Seconds sweep_beat{5};
constexpr Seconds sweep_proof{10};         // for a stranger to prove that it is a member
constexpr Seconds longest_silence{30};     // after this, a member reconnects
constexpr Seconds pause_between_tries{3};  // between attempts to connect
constexpr Seconds sweep_pause{0.2};
constexpr Seconds lost_after{60};  // without a message from a server, the giver stops waiting for its points
constexpr Seconds alone_after{600};  // without a message from the giver, an idle server stops

constexpr std::size_t longest_note = 1000;

}  // namespace

SweepMeans SweepMeans::of(const Host& host, const Path& program, const wire::SweepPoints& points) {
  SweepMeans means;
  means.start = [&host, program](const wire::JobsToStart& jobs, int lease) -> wire::StartedJob {
    wire::StartJobsReply reply = start_jobs(host, jobs, lease);
    if (reply.is_program_missing) {
      return {.id = {}, .reason = "the program is missing in " + program.string()};
    }
    return reply.jobs.empty() ? wire::StartedJob{} : std::move(reply.jobs.front());
  };
  if (points.lease) {
    means.take_lease = [&host, terms = *points.lease] {
      Shortage shortage;  // it is taken when it is free
      return agent::take_lease(host, terms, shortage);
    };
  }
  return means;
}

SweepSupervisor::SweepSupervisor(const Host& host, const JobsFolder& jobs, const Path& program,
                                 const SweepFolder& folder, wire::SweepPoints points, wire::SweepRun run,
                                 SweepMeans means)
    : host_(host),
      jobs_(jobs),
      program_(program),
      folder_(folder),
      diary_(folder),
      points_(std::move(points)),
      run_(std::move(run)),
      means_(std::move(means)),
      is_giver_(run_.own == first_server()),
      slots_(points_.slots, means_.take_lease),
      peers_(host_,
             {.own = run_.own,
              .servers = run_.servers,
              .tokens = run_.tokens,
              .address = run_.address,
              .port = run_.port},
             *this) {
  if (run_.points.size() > points_.own.size()) {
    throw std::runtime_error("the list of its points here is a different one");
  }
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < run_.points.size(); ++i) {
    if (wire::is_id(run_.points[i])) {
      ids.push_back(run_.points[i]);
      numbers_[run_.points[i]] = i;
    }
  }
  for (const std::string& server : run_.servers) {
    last_heard_[server] = read_clock();
  }
  std::set<std::string> begun = diary_.read().begun;
  diary_.open();
  std::map<std::string, int> running;
  for (const std::string& point : run_.busy) {
    running[point] = slots_.occupy();
    watch(point);
  }
  taker_.emplace(std::move(begun), std::move(running), *this, *this);
  if (!is_giver_) {
    return;
  }
  giver_.emplace(ids, *this);
  taker_->link();
  if (run_.servers.size() > 1) {
    peers_.listen();
    if (!peers_.is_listening()) {
      throw std::runtime_error(text::format("cannot listen at port {}: {}", run_.port, peers_.refusal()));
    }
  }
}

// ---- Points

std::optional<int> SweepSupervisor::take_lease() {
  return slots_.take(now_);
}

PointStart SweepSupervisor::start(const std::string& point, int slot) {
  if (folder_.is_stopped()) {
    return PointStart::failed;
  }
  const TakenLease* lease = slots_.find_lease(slot);
  const auto start_point = [this, jobs = make_start(point, lease),
                            fd = lease == nullptr ? -1 : lease->lease.fd()] {
    return means_.start(jobs, fd);
  };
  const auto result = starts_.start(point, start_point, means_.start_patience);
  if (!result) {
    // The storage hangs. The point may still start at any time, so it keeps its slot and its lease.
    late_slots_[point] = slot;
    return PointStart::started;
  }
  return note_start(point, slot, *result);
}

wire::JobsToStart SweepSupervisor::make_start(const std::string& point, const TakenLease* lease) const {
  wire::JobsToStart start{.place = {jobs_.jobs.parent_path(), jobs_.jobs.filename()},
                          .program = {program_.filename(), 0},  // the existing copy
                          .spec = points_.spec};
  wire::NewJob& job =
      start.jobs.emplace_back(wire::NewJob{.id = point, .spec = points_.own[numbers_.at(point)]});
  if (points_.retry > 0) {
    job.files.push_back({"retry", text::format("{}\n", points_.retry)});
  }
  if (lease != nullptr) {
    job.files.push_back({"devices", lease->devices});
  }
  return start;
}

PointStart SweepSupervisor::note_start(const std::string& point, int slot, const wire::StartedJob& result) {
  if (result.outcome == wire::StartOutcome::failed) {
    trouble_ = "cannot start a point: " + result.reason;
    return PointStart::failed;
  }
  if (result.outcome != wire::StartOutcome::started) {
    return PointStart::exists;
  }
  slots_.hand_over(slot);
  watch(point);
  return PointStart::started;
}

void SweepSupervisor::watch(const std::string& point) {
  auto& job = running_[point];
  job = std::make_unique<WatchedJob>(host_, jobs_, point, false, false);
  job->close_fifo();  // a thousand points would need that many descriptors
}

void SweepSupervisor::take_late_starts(Seconds now) {
  for (const auto& [point, result] : starts_.take_late()) {
    const int slot = late_slots_.extract(point).mapped();
    const PointStart how = note_start(point, slot, result);
    if (how == PointStart::failed) {
      taker_->note_failed(point, now);
    } else if (how == PointStart::exists) {
      taker_->note_end(point);
    }
  }
}

void SweepSupervisor::look_at_points(Seconds now) {
  pollfd ready{looker_.fd(), POLLIN, 0};
  if (looker_.is_busy() && ::poll(&ready, 1, 0) > 0) {
    for (const JobLooker::Found& found : looker_.take()) {
      if (found.look.has_ended) {
        running_.erase(looked_at_[found.index]);
        taker_->note_end(looked_at_[found.index]);
      }
    }
  }
  if (looker_.is_busy() || now < next_look_ || running_.empty()) {
    return;
  }
  next_look_ = now + sweep_pause;
  looked_at_.clear();
  std::vector<JobLooker::Order> orders;
  for (const auto& [point, job] : running_) {
    orders.push_back({looked_at_.size(), job.get(), 0});
    looked_at_.push_back(point);
  }
  looker_.start(std::move(orders), now);
}

bool SweepSupervisor::write(const wire::SweepEntry& entry) {
  const bool is_written = diary_.write(entry);
  if (!is_written && std::holds_alternative<wire::PointGiven>(entry)) {
    trouble_ = "cannot write the list of given points: is the disk full?";
  }
  return is_written;
}

// ---- Messages

void SweepSupervisor::tell(const wire::SweepMessage& message) {
  if (is_giver_) {
    to_itself_.push_back(message);
  } else {
    peers_.broadcast(wire::SweepNote{message});
  }
}

void SweepSupervisor::give(const std::string& server, const wire::SweepMessage& message) {
  if (server == run_.own) {
    taker_->hear(message, read_clock());
  } else if (Link* link = peers_.find(server)) {
    link->send(wire::SweepNote{message});
  }
}

void SweepSupervisor::talk_to_itself() {
  while (!to_itself_.empty()) {
    for (const wire::SweepMessage& message : std::exchange(to_itself_, {})) {
      giver_->hear(run_.own, message,
                   [this](const auto& server, const auto& answer) { give(server, answer); });
    }
  }
}

void SweepSupervisor::greet(Link& link) {
  if (!is_giver_) {
    link.send(wire::Hello{});
  }
}

void SweepSupervisor::take(Link& link, const wire::LinkMessage& message) {
  const Seconds now = read_clock();
  if (!is_giver_) {
    take_from_giver(message, now);
    return;
  }
  last_heard_[link.server()] = now;
  if (std::holds_alternative<wire::Hello>(message)) {
    giver_->forget(link.server());
    link.send(wire::Welcome{});
  } else if (const auto* note = std::get_if<wire::SweepNote>(&message)) {
    giver_->hear(link.server(), note->message,
                 [this](const auto& server, const auto& answer) { give(server, answer); });
  }
}

void SweepSupervisor::take_from_giver(const wire::LinkMessage& message, Seconds now) {
  last_heard_[first_server()] = now;
  if (std::holds_alternative<wire::Welcome>(message)) {
    peers_.set_refusal("");
    is_welcome_ = true;
    taker_->link();
  } else if (const auto* note = std::get_if<wire::SweepNote>(&message)) {
    // The giver's server may be malicious, so only points of the sweep are started.
    const auto* given = std::get_if<wire::GivePoint>(&note->message);
    if (given == nullptr || numbers_.contains(given->point)) {
      taker_->hear(note->message, now);
    }
  }
}

void SweepSupervisor::note_drop(const Link& /*link*/) {
  if (!is_giver_) {
    is_welcome_ = false;
    taker_->unlink();
  }
}

// ---- Rounds

void SweepSupervisor::write_note() {
  std::string text = slots_.trouble();
  if (text.empty() && !is_giver_ && !is_welcome_ && !peers_.refusal().empty()) {
    text = text::format("cannot reach {} at port {}: {}", first_server(), run_.port, peers_.refusal());
  } else if (text.empty() && (is_giver_ || taker_->troubles() > 0)) {
    text = trouble_.empty() ? peers_.refusal() : trouble_;
  }
  if (text != note_) {
    note_ = text;
    put_file(folder_.file("note"), wire::to_line(text, longest_note) + "\n");
  }
}

bool SweepSupervisor::is_over(Seconds now) const {
  if (!taker_->is_idle()) {
    return false;
  }
  if (!is_giver_) {
    return taker_->is_over() || now - last_heard_.at(first_server()) > alone_after;
  }
  std::set<std::string> silent;
  for (const auto& [server, heard] : last_heard_) {
    if (server != run_.own && now - heard > lost_after) {
      silent.insert(server);
    }
  }
  return to_itself_.empty() && giver_->is_over(silent);
}

bool SweepSupervisor::step(Seconds now) {
  now_ = now;
  take_late_starts(now);
  look_at_points(now);
  talk_to_itself();
  taker_->tick(now);
  talk_to_itself();
  if (now >= next_beat_) {
    next_beat_ = now + sweep_beat;
    peers_.broadcast(wire::Beat{});
  }
  peers_.flush();
  peers_.drop_silent(now, sweep_proof, longest_silence);
  if (!is_giver_ && !taker_->is_over()) {
    peers_.keep_connecting(now, pause_between_tries);
  }
  write_note();
  return is_over(now);
}

void SweepSupervisor::wait() {
  std::vector<pollfd> fds;
  peers_.prepare(fds);
  if (looker_.is_busy()) {
    fds.push_back({looker_.fd(), POLLIN, 0});
  }
  if (::poll(fds.data(), fds.size(), static_cast<int>(sweep_pause.count() * 1000)) >= 0) {
    peers_.step(fds, read_clock());
  }
}

void SweepSupervisor::run() {
  while (!step(read_clock())) {
    wait();
  }
  if (is_giver_) {
    peers_.say_last(wire::SweepNote{wire::SweepOver{}});
  }
}

}  // namespace remote::agent
