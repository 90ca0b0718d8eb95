#include "agent/launch/supervisor.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/run.hpp"
#include "agent/host/start.hpp"
#include "agent/host/utc_time.hpp"
#include "agent/job/init_file.hpp"
#include "agent/job/job_files.hpp"
#include "agent/launch/attempts_on_server.hpp"
#include "agent/launch/clock.hpp"
#include "agent/launch/hang_watch.hpp"
#include "agent/launch/job_looker.hpp"
#include "agent/launch/killer.hpp"
#include "agent/launch/launch_files.hpp"
#include "agent/launch/lease_queue.hpp"
#include "agent/launch/mpi_orders.hpp"
#include "agent/launch/notification.hpp"
#include "agent/launch/peers.hpp"
#include "agent/launch/status.hpp"
#include "agent/launch/watchdog.hpp"
#include "agent/launch/watched_job.hpp"
#include "agent/network/socket_address.hpp"
#include "base/format.hpp"
#include "rules/restart_policy.hpp"

namespace remote::agent {
namespace {

constexpr Seconds time_to_prove{10};  // for a stranger to prove that it is a member
constexpr Seconds watchdog_pause{5};  // before a dead watchdog is replaced
constexpr Seconds poll_pause{0.5};    // between checks of jobs without a FIFO, and of attempts
constexpr Seconds look_pause{5};      // between checks of jobs whose guards report their ends
constexpr std::chrono::seconds lock_patience{2};
constexpr std::size_t most_tails = 4096;

std::vector<std::string> list_names(const wire::LaunchSpec& spec) {
  std::vector<std::string> names;
  for (const wire::LaunchServer& server : spec.servers) {
    names.push_back(server.name);
  }
  return names;
}

rules::LaunchSetup make_setup(const wire::LaunchSpec& spec) {
  return {.own = spec.server,
          .servers = list_names(spec),
          .grace = Seconds(spec.grace_seconds),
          .timeout = Seconds(spec.timeout_seconds),
          .needed = spec.needed,
          .ends_alone = spec.ends_alone};
}

rules::RestartSetup make_restart_setup(const wire::LaunchSpec& spec) {
  const wire::RestartSpec& restarts = *spec.restarts;
  rules::RestartSetup setup;
  setup.most = restarts.most;
  setup.least = restarts.least;
  setup.final_codes = {restarts.final_codes.begin(), restarts.final_codes.end()};
  setup.spares = static_cast<std::size_t>(restarts.spares);
  const auto allows = [&](wire::RestartOn cause) {
    return std::ranges::find(restarts.causes, cause) != restarts.causes.end();
  };
  setup.kinds = {.any = restarts.causes.empty(),
                 .exit = allows(wire::RestartOn::exit),
                 .signal = allows(wire::RestartOn::signal),
                 .out_of_memory = allows(wire::RestartOn::out_of_memory),
                 .lost = allows(wire::RestartOn::lost),
                 .hang = allows(wire::RestartOn::hang)};
  for (const wire::LaunchServer& server : spec.servers) {
    setup.ranks.push_back(server.ranks);
  }
  return setup;
}

class LaunchSupervisor final : public PeersHandler, public rules::RestartActs, public HangWatchActs {
 public:
  LaunchSupervisor(const Host& host, const JobsFolder& folder, const Path& program, wire::LaunchSpec spec)
      : host_(host),
        folder_(folder),
        program_(program),
        spec_(std::move(spec)),
        start_(read_clock()),
        killer_(folder_),
        peers_(host_,
               {.own = spec_.server,
                .servers = list_names(spec_),
                .tokens = spec_.tokens,
                .address = spec_.address,
                .port = spec_.port},
               *this),
        watchdog_([this] { take_over(); }) {
    std::vector<rules::LaunchJob> jobs;
    for (const wire::SupervisedJob& job : spec_.jobs) {
      jobs_.push_back(
          std::make_unique<WatchedJob>(host_, folder_, job.id, spec_.uses_mpi(), spec_.restarts.has_value()));
      jobs.push_back({.id = job.id, .rank = job.rank});
    }
    if (spec_.restarts) {
      attempts_.emplace(host_, folder_, spec_, jobs_);
      auto policy = std::make_unique<rules::RestartPolicy>(
          make_setup(spec_), make_restart_setup(spec_), std::move(jobs), attempts_->attempt(),
          AttemptsOnServer::choose_first_question(), attempts_->find_revived(start_), start_, *this);
      restarts_ = policy.get();
      policy_ = std::move(policy);
    } else {
      policy_ = std::make_unique<rules::LaunchPolicy>(make_setup(spec_), std::move(jobs), start_, *this);
    }
    if (spec_.lease_seconds) {
      queue_.emplace(host_, spec_, jobs_.front()->folder(), [this] { return choose_port(); });
    }
    if (spec_.notifies && policy_->is_coordinator()) {
      notifier_.emplace(host_, program_, jobs_.front()->folder(), spec_.activate);
    }
    if (spec_.hang) {
      const EvidenceTaker taker{host_.system("/proc/self/exe"), folder_.jobs, program_};
      hang_ = std::make_unique<HangWatch>(host_, folder_, spec_, taker, *policy_, start_, *this);
    }
  }

  // `takes_over`: continues for a supervisor that died. Its watchdog then starts later, so that processes
  // that crash at the start do not replace each other forever.
  void run(bool takes_over) {
    if (!register_process()) {
      return;
    }
    next_watchdog_ = takes_over ? start_ + watchdog_pause : start_;
    restore();
    open_channels();
    for (;;) {
      const Seconds now = read_clock();
      keep_watchdog(now);
      look_at_peers(now);
      look_at_jobs(now);
      if (restarts_ != nullptr) {
        restarts_->tick(now);
      }
      step_queue(now);
      if (hang_) {
        hang_->step(now);
      }
      kill_jobs(now);
      send_orders(now);
      if (now >= next_beat_) {
        next_beat_ = now + policy_->beat();
        peers_.broadcast(wire::Beat{});
      }
      write_status(now);
      if (is_over(now)) {
        leave();
        return;
      }
      peers_.flush();
      wait(now);
    }
  }

 private:
  // ---- This process and its records

  // Called in the watchdog's process, which becomes the supervisor.
  void take_over();

  // Records this process in the jobs' folders. Returns false if the launch already has a supervisor here, or
  // has ended.
  bool register_process() {
    for (const auto& job : jobs_) {
      Descriptor file(::open((job->folder() / "lifeline.json").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
      if (!file) {
        continue;
      }
      // A killed supervisor can keep its lock for a moment after its watchdog has noticed its death.
      if (!lock_file(file.get(), lock_patience)) {
        return false;
      }
      lock_ = std::move(file);
      break;
    }
    if (!lock_) {
      return false;
    }
    write_all("lifeline.pid", make_process_record(host_));
    return true;
  }

  void restore() {
    const Seconds now = read_clock();
    for (const auto& job : jobs_) {
      if (!exists(job->folder())) {
        continue;
      }
      journal_ = job->folder();
      is_restoring_ = true;
      for (const wire::LaunchEntry& entry : read_launch_journal(journal_)) {
        policy_->restore(entry, now);
      }
      is_restoring_ = false;
      return;
    }
  }

  void write_all(const std::string& file, const std::string& text) const {
    for (const auto& job : jobs_) {
      put_file(job->folder() / file, text + "\n");
    }
  }

  void keep_watchdog(Seconds now) {
    if (now >= next_watchdog_) {
      next_watchdog_ = now + watchdog_pause;
      watchdog_.keep();
    }
  }

  void write_status(Seconds now) {
    const auto status = describe_supervisor(spec_, *policy_, peers_, dropped_, ready_.value_or(now), now);
    if (status && *status != status_) {
      status_ = *status;
      write_all("lifeline", status_);
    }
  }

  void leave() {
    peers_.say_last(wire::Bye{});
    // A server that was lost, or whose guards died, has not reported that it no longer needs the file.
    if (policy_->is_coordinator() && spec_.is_whole && policy_->present().size() <= 1) {
      for (const auto& job : jobs_) {
        remove_init_file(job->folder());
      }
    }
    if (notifier_) {
      peers_.stop_listening();
      notify_end();  // this takes up to an hour, during which the watchdog and the record remain
    }
    watchdog_.dismiss();
    for (const auto& job : jobs_) {
      remove_launch_files(job->folder());
    }
  }

  void notify_end() {
    std::vector<rules::JobResult> results;
    for (const auto& job : jobs_) {
      results.push_back(job->read_result());
    }
    const rules::LaunchVerdict verdict = policy_->verdict(results);
    Notification notification = describe_end(verdict);
    const auto failed = [&](const auto& job) {
      const auto found = failures_.find(job->id());
      return verdict.end == rules::LaunchEnd::failed && found != failures_.end() &&
             found->second.rank == verdict.rank;
    };
    const auto job = std::ranges::find_if(jobs_, failed);
    if (job != jobs_.end()) {
      notification.lines = read_tail(**job);
    } else if (verdict.end == rules::LaunchEnd::failed && verdict.rank) {
      const auto tail = tails_.find(*verdict.rank);
      notification.lines = tail == tails_.end() ? "" : tail->second;
    } else {
      notification.lines = read_notification_lines(jobs_.front()->folder(), {"job.out", "job.err"});
    }
    notifier_->send_about_end(notification);
  }

  std::string read_tail(const WatchedJob& job) const {
    const auto failure = failures_.find(job.id());
    const std::optional<wire::RankFailure> worker = job.find_failed_worker();
    const bool is_worker = worker && failure != failures_.end() && worker->rank == failure->second.rank;
    return read_notification_lines(
        job.folder(), job.list_output_files(is_worker ? std::optional(worker->rank) : std::nullopt));
  }

  // ---- The links

  void open_channels() {
    if (policy_->is_coordinator() && spec_.servers.size() > 1) {
      peers_.listen();
    }
    if (policy_->is_coordinator() && spec_.uses_mpi()) {
      std::map<std::string, std::string> servers;
      for (const wire::LaunchServer& server : spec_.servers) {
        servers.emplace(server.mpi_host, server.name);
      }
      try {
        orders_.emplace(jobs_.front()->folder(), std::move(servers));
        orders_->look();
      } catch (const std::runtime_error&) {
        // The folder is gone or its disk is full, which the job reports as well.
      }
    }
  }

  void look_at_peers(Seconds now) {
    peers_.drop_silent(now, time_to_prove, Seconds(spec_.timeout_seconds) / 3);
    policy_->notice_silence(now);
    if (!policy_->is_coordinator()) {
      peers_.keep_connecting(now, choose_pause_between_tries(now));
    }
  }

  bool is_missing(const std::string& server, Seconds now) const {
    const std::vector<std::string> missing = policy_->silent(now);
    return std::ranges::find(missing, server) != missing.end();
  }

  Seconds choose_pause_between_tries(Seconds now) const {
    if (is_missing(policy_->coordinator(), now)) {
      return Seconds(30);
    }
    return std::min(now - start_ < first_seconds ? Seconds(0.05) : Seconds(0.5), policy_->beat());
  }

  void greet(Link& link) override {
    if (policy_->is_coordinator()) {
      return;
    }
    link.send(wire::Hello{});
    // The coordinator may not have received these messages.
    for (const wire::LinkMessage& message : policy_->reports()) {
      link.send(message);
    }
    for (const wire::LinkMessage& message : sent_tails_) {
      link.send(message);
    }
    if (policy_->reason()) {
      link.send(wire::EndLaunch{*policy_->reason()});
    }
  }

  void take(Link& link, const wire::LinkMessage& message) override {
    const Seconds now = read_clock();
    if (policy_->is_coordinator() && std::holds_alternative<wire::Hello>(message)) {
      welcome(link);
    }
    const std::string server = policy_->is_coordinator() ? link.server() : policy_->coordinator();
    if (queue_) {
      queue_->hear(server, message);
    }
    if (const auto* order = std::get_if<wire::MpiOrder>(&message);
        order != nullptr && spec_.uses_mpi() && !policy_->is_coordinator()) {
      keep_mpi_order(jobs_.front()->folder(), *order);
    }
    if (const auto* tail = std::get_if<wire::LastLines>(&message);
        tail != nullptr && policy_->is_coordinator() && tails_.size() < most_tails) {
      tails_[tail->rank] = clean_notification_lines(tail->text);
    }
    if (hang_) {
      hang_->hear(server, message, now);
    }
    policy_->hear(server, message, now);
  }

  void welcome(Link& link) {
    for (const wire::LinkMessage& reply : policy_->welcome(link.server())) {
      link.send(reply);
    }
    if (const wire::MpiOrder* order = orders_ ? orders_->find_sent(link.server()) : nullptr) {
      link.send(*order);
    }
    if (spec_.uses_mpi() && policy_->jobs_have_ended()) {
      link.send(wire::MpiOrder{});
    }
  }

  void note_drop(const Link& /*link*/) override {
    if (!policy_->is_coordinator()) {
      dropped_ = format_time_of_day(read_wall_clock()) + " UTC";
      if (!policy_->last_heard().contains(policy_->coordinator())) {
        peers_.set_refusal("it closes the connection");
      }
    }
  }

  // ---- The jobs

  void look_at_jobs(Seconds now) {
    if (now < next_look_ || looker_.is_busy()) {
      return;
    }
    std::vector<JobLooker::Order> orders;
    bool polls = restarts_ != nullptr;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const rules::LaunchJob& job = policy_->jobs()[i];
      if (!job.ended) {
        orders.push_back({i, jobs_[i].get(), job.rank});
        polls = polls || jobs_[i]->fifo() < 0;
      }
    }
    looker_.start(std::move(orders), now);
    next_look_ = now + (polls ? poll_pause : look_pause);
  }

  void take_looks() {
    for (JobLooker::Found& found : looker_.take()) {
      rules::LaunchJob& job = policy_->job(found.index);
      job.round = found.look.round;
      if (found.look.failed_rank && !job.ended) {
        found.look.failed_rank->server = spec_.server;
        policy_->note_failed_rank(found.index, *found.look.failed_rank, read_clock());
      }
      if (!found.look.has_ended || job.ended) {
        continue;
      }
      job.stopped_for = found.look.stopped_for;
      if (found.look.failure) {
        found.look.failure->server = spec_.server;
        failures_[job.id] = *found.look.failure;
        if (spec_.notifies && !policy_->is_coordinator()) {
          sent_tails_.emplace_back(wire::LastLines{found.look.failure->rank, read_tail(*jobs_[found.index])});
          peers_.broadcast(sent_tails_.back());
        }
      }
      policy_->note_end(found.index, found.look.failure, read_clock());
      jobs_[found.index]->close_fifo();
    }
    if (orders_ && policy_->jobs_have_ended()) {
      peers_.broadcast(wire::MpiOrder{});  // so that jobs that still wait for an order can exit
      orders_->tell_ends({policy_->others().begin(), policy_->others().end()});
      orders_.reset();
    }
    looked_ = looker_.began();
  }

  // Stops this server's running jobs, and the remaining processes of failed ones.
  void kill_jobs(Seconds now) {
    if (killer_.is_running()) {
      const std::optional<bool> is_clean = killer_.check_end();
      if (!is_clean) {
        return;
      }
      if (restarts_ != nullptr) {
        restarts_->note_killed(*is_clean, now);
      }
      killed_ = now;
      next_look_ = Seconds(0);
    }
    if (looked_ < killed_) {
      return;  // it is not yet known which jobs were stopped
    }
    const std::vector<std::string> ids = policy_->jobs_to_kill(now);
    if (!ids.empty()) {
      killer_.start(choose_stop_word(), ids);
    }
  }

  std::string choose_stop_word() const {
    if (restarts_ != nullptr && !restarts_->is_released()) {
      return "again";
    }
    const auto& reason = policy_->reason() ? policy_->reason() : policy_->left_because();
    return reason ? to_stop_word(to_stopped_by(*reason)) : "launch";
  }

  bool is_over(Seconds now) {
    if (killer_.is_running() || looked_ < killed_) {
      return false;
    }
    return policy_->try_to_leave(now, peers_.is_listening());
  }

  // ---- mpirun and leases

  void send_orders(Seconds now) {
    if (!orders_) {
      return;
    }
    if (orders_->awaits_ends()) {
      orders_->tell_ends(policy_->ended_there(now));
    }
    if (!orders_->has_waiting()) {
      return;
    }
    const auto send = [this](const std::string& server, const wire::MpiOrder& order) {
      Link* link = peers_.find(server);
      if (link == nullptr || !link->is_open() || !policy_->takes_orders(server)) {
        return false;
      }
      link->send(order);
      return true;
    };
    orders_->send(send, describe_unreachable(now));
  }

  // Servers that will never get an order, with the reason.
  std::map<std::string, std::string> describe_unreachable(Seconds now) const {
    std::map<std::string, std::string> reasons;
    const std::vector<std::string> present = policy_->present();
    for (const std::string& server : policy_->others()) {
      if (!peers_.is_listening()) {
        reasons[server] = "this server cannot listen: " + peers_.refusal();
      } else if (is_missing(server, now)) {
        reasons[server] = text::format("server {} does not reach this one at {} port {}", server,
                                       spec_.address, spec_.port);
      } else if (std::ranges::find(present, server) == present.end()) {
        reasons[server] = text::format("server {} is lost", server);
      }
    }
    return reasons;
  }

  void step_queue(Seconds now) {
    if (!queue_ || queue_->is_over()) {
      return;
    }
    const std::string& coordinator = policy_->coordinator();
    std::vector<std::string> missing;
    if (policy_->is_coordinator()) {
      missing = policy_->silent(now);
    } else if (is_missing(coordinator, now)) {
      missing.push_back(coordinator);
    }
    const std::vector<std::string> present = policy_->present();
    const bool has_left = std::ranges::find(present, coordinator) == present.end();
    const LeaseQueue::Step step = queue_->step(now, missing, has_left);
    for (const auto& [server, message] : step.messages) {
      tell(server, message);
    }
    if (step.lost) {
      policy_->end_lost(*step.lost, now);
    }
  }

  // ---- Actions of the policies

  void broadcast(const wire::LinkMessage& message) override { peers_.broadcast(message); }
  void record(const wire::LaunchEntry& entry) override {
    if (is_restoring_) {
      return;
    }
    append_to_launch_journal(journal_, entry);
    if (const auto* left = std::get_if<wire::ServerLeftOut>(&entry)) {
      write_all("left", wire::percent_encode(left->server) + " " + to_stop_word(to_stopped_by(left->reason)));
    }
  }
  void tell(const std::string& server, const wire::LinkMessage& message) override {
    if (Link* link = peers_.find(server)) {
      link->send(message);
    }
  }
  bool start(int attempt, const wire::Shape& shape) override {
    if (orders_) {
      orders_->forget();
    }
    std::string mpi_hosts;
    if (spec_.uses_mpi()) {
      mpi_hosts = list_mpi_hosts();
    }
    std::vector<int> ranks;
    const bool has_started = attempts_->start(attempt, shape, mpi_hosts, ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      policy_->job(i).rank = ranks[i];
    }
    return has_started;
  }
  std::string list_mpi_hosts() const {
    std::string hosts;
    for (const std::string& name : restarts_->members().names()) {
      const auto server = std::ranges::find(spec_.servers, name, &wire::LaunchServer::name);
      hosts += (hosts.empty() ? "" : ",") +
               text::format("{}:{}", server->mpi_host, restarts_->members().ranks(name));
    }
    return hosts;
  }
  void renew_lease(Seconds until) override { attempts_->renew_lease(until); }
  void release(const wire::AttemptsOver& over, const std::vector<std::string>& ended) override {
    attempts_->release(over, ended);
  }
  wire::RankFailure describe_failure(const rules::LaunchJob& job) override {
    return attempts_->describe_failure(job);
  }
  std::vector<std::string> checkpoints() override { return attempts_->find_checkpoints(); }
  int choose_port() override { return find_free_port(spec_.address.find(':') != std::string::npos); }
  void record_attempt(int attempt, Seconds began, Seconds failed, Seconds next, const wire::Cause& cause,
                      const std::vector<std::string>& without, bool sick) override {
    attempts_->record_attempt(attempt, began, failed, next, cause, without, sick);
  }
  void refuse_checkpoint() override { attempts_->refuse_checkpoint(); }
  void mark_sick(const std::string& mark) override { attempts_->mark_sick(mark); }
  void end_hung(const wire::Hang& hang, bool restart) override {
    policy_->end_hung(hang, restart, read_clock());
  }
  void notify_hang(const wire::Hang& hang, bool restarts) override {
    if (notifier_ && !policy_->reason()) {
      Notification notification = describe_hang(hang, restarts);
      notification.lines = read_notification_lines(jobs_.front()->folder(), {"job.out", "job.err"});
      notifier_->start_about_hang(notification);
    }
  }
  void write_status(const std::string& file, const std::string& text) override { write_all(file, text); }

  // ---- Waiting

  void wait(Seconds now) {
    std::vector<pollfd> fds;
    peers_.prepare(fds);
    const std::size_t first_own = fds.size();
    for (const auto& job : jobs_) {
      fds.push_back({job->fifo(), POLLIN, 0});  // poll() ignores -1
    }
    for (const int fd :
         {looker_.fd(), hang_ ? hang_->fd() : -1, orders_ ? orders_->fifo() : -1, killer_.fd()}) {
      fds.push_back({fd, POLLIN, 0});
    }
    const Seconds pause = choose_pause(now);
    const Seconds asleep = read_clock();
    const int timeout = static_cast<int>(pause.count() * 1000);
    const int ready = ::poll(fds.data(), fds.size(), timeout);
    const Seconds awake = read_clock();
    if (!ready_) {
      ready_ = awake;
    }
    // A much longer sleep means that this process or its server was paused. Other servers must not count as
    // silent because of that.
    if (const Seconds late = awake - asleep - pause; late > Seconds(1)) {
      policy_->discount_pause(late);
      peers_.discount_pause(late);
      ready_ = std::min(*ready_ + late, awake);
    }
    if (ready <= 0) {
      return;
    }
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (fds[first_own + i].revents != 0) {
        jobs_[i]->drain_fifo();
        next_look_ = Seconds(0);
      }
    }
    const pollfd* own = &fds[first_own + jobs_.size()];
    if (own[0].revents != 0) {
      take_looks();
    }
    if (own[2].revents != 0 && orders_) {
      orders_->look();
    }
    peers_.step(fds, awake);
  }

  Seconds choose_pause(Seconds now) const {
    const bool is_starting = !policy_->is_coordinator() && status_.empty() && now - start_ < first_seconds;
    if (is_starting) {
      return Seconds(0.05);
    }
    Seconds until = std::min(next_beat_, looker_.is_busy() ? next_beat_ : next_look_);
    const bool is_cut_off = !policy_->is_coordinator() && !peers_.is_linked();
    const bool ticks = restarts_ != nullptr || queue_ || hang_ || orders_ || policy_->reason() ||
                       is_cut_off || status_ != "ok" || policy_->jobs_have_ended();
    if (ticks) {
      const bool is_urgent = policy_->reason() || (queue_ && !queue_->is_over()) || is_cut_off;
      until = std::min(until, now + (is_urgent ? Seconds(0.1) : poll_pause));
    }
    return std::clamp(until - now, Seconds(0.001), Seconds(5));
  }

  const Host& host_;
  const JobsFolder& folder_;
  Path program_;
  wire::LaunchSpec spec_;
  Seconds start_;
  // When it first waited for the others. On slow storage, this can be long after the start.
  std::optional<Seconds> ready_;
  Killer killer_;
  JobLooker looker_;
  Peers peers_;
  std::vector<std::unique_ptr<WatchedJob>> jobs_;
  std::optional<AttemptsOnServer> attempts_;
  std::unique_ptr<rules::LaunchPolicy> policy_;
  rules::RestartPolicy* restarts_ = nullptr;  // only for a launch with restarts
  std::optional<LeaseQueue> queue_;
  std::unique_ptr<HangWatch> hang_;
  std::optional<MpiOrders> orders_;
  std::optional<Notifier> notifier_;
  Watchdog watchdog_;
  Descriptor lock_;
  Path journal_;  // the folder that contains the journal
  bool is_restoring_ = false;
  std::string status_;
  std::string dropped_;
  std::map<std::string, wire::RankFailure> failures_;  // failures of this server's jobs, by id
  std::vector<wire::LinkMessage> sent_tails_;
  std::map<int, std::string> tails_;  // last lines of ranks that failed elsewhere
  Seconds next_look_{0};
  Seconds next_beat_{0};
  Seconds next_watchdog_{0};
  Seconds looked_{0};  // the start of the last look whose results are known
  Seconds killed_{0};  // the end of the last kill
};

// Reads the spec from the folder of this job.
void supervise(const Host& host, const JobsFolder& folder, const Path& program, const std::string& job,
               bool takes_over) {
  auto spec = read_launch_spec(folder.jobs / job);
  if (!spec) {
    return;
  }
  // The memory is not freed, because the process exits, and a thread may hang on a disk.
  auto supervisor = std::make_unique<LaunchSupervisor>(host, folder, program, std::move(*spec));
  supervisor.release()->run(takes_over);
}

void LaunchSupervisor::take_over() {
  ::prctl(PR_SET_NAME, supervisor_name);
  for (const wire::SupervisedJob& job : spec_.jobs) {
    if (exists(folder_.jobs / job.id / "lifeline.json")) {
      supervise(host_, folder_, program_, job.id, true);
      return;
    }
  }
}

}  // namespace

bool start_launch_supervisor(const Host& host, const JobsFolder& folder, const Path& agent,
                             const Path& program, const std::string& job) {
  return start_apart(host, {.argv = {agent, "supervise-launch", folder.jobs, program, job}, .folder = "/"});
}

int run_supervise_launch(int count, char** words) {
  if (count != 3 || words[0][0] != '/' || !wire::is_id(words[2])) {
    return 2;
  }
  ::prctl(PR_SET_NAME, supervisor_name);
  ::umask(077);
  std::signal(SIGPIPE, SIG_IGN);
  ::mallopt(M_ARENA_MAX, 1);  // a heap for each thread would use more memory
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {  // each server needs a connection
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  const Host host = Host::of_this_process();
  const JobsFolder folder{.project = Path(words[0]).parent_path(), .jobs = words[0]};
  supervise(host, folder, words[1], words[2], false);
  return 0;
}

}  // namespace remote::agent
