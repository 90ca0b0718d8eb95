#include "restart_world.hpp"

#include <algorithm>
#include <stdexcept>

namespace remote::simulation {
namespace {

constexpr Seconds lease{6};
constexpr double longest_kill = 2;  // seconds, for a simulated rank

}  // namespace

RestartWorld::RestartWorld(std::uint64_t seed, WorldOptions wanted)
    : options(std::move(wanted)), random(seed) {
  for (int i = 0; i < options.servers + options.spares; ++i) {
    names.push_back("s" + std::to_string(i));
  }
  delay_ = options.longest_delay.value_or(Seconds(random.choose({0.0, 0.5, 2.0, 6.0, 15.0})));
  for (const std::string& name : names) {
    servers_.push_back(std::make_unique<SimulatedServer>(*this, name));
  }
}

RestartWorld::~RestartWorld() = default;

void RestartWorld::post(const std::string& from, const std::string& to, const wire::LinkMessage& message) {
  if (cut_.contains({from, to}) && (cut_loses_all_ || random.chance() < 0.8)) {
    return;
  }
  mail_.push_back({now + Seconds(random.uniform(0, delay_.count())), from, to, message});
}

std::set<int> RestartWorld::living_attempts() const {
  std::set<int> attempts_now;
  for (const auto& each : servers_) {
    if (each->lives) {
      attempts_now.insert(each->attempt);
    }
  }
  return attempts_now;
}

bool RestartWorld::lives(int attempt, const std::set<std::string>& wanted) const {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (servers_[i]->lives != wanted.contains(names[i]) ||
        (servers_[i]->lives && servers_[i]->attempt != attempt)) {
      return false;
    }
  }
  return true;
}

void RestartWorld::lose(const std::string& name) {
  for (const std::string& other : names) {
    cut_.insert({name, other});
    cut_.insert({other, name});
  }
  cut_loses_all_ = true;
}

void RestartWorld::step() {
  now += Seconds(0.5);
  std::vector<Letter> come;
  const auto is_late = [this](const Letter& letter) { return letter.when > now; };
  std::ranges::remove_copy_if(mail_, std::back_inserter(come), is_late);
  std::erase_if(mail_, [&](const Letter& letter) { return !is_late(letter); });
  random.shuffle(come);
  for (const auto& each : servers_) {
    each->pass_time();
  }
  for (const Letter& letter : come) {
    const auto to = std::ranges::find(names, letter.to) - names.begin();
    servers_[static_cast<std::size_t>(to)]->hear(letter.from, letter.message);
  }
  for (const auto& each : servers_) {
    each->work();
  }
}

void RestartWorld::make_trouble() {
  if (random.chance() < 0.06) {
    const std::string from = random.choose(names);
    cut_.insert({from, random.choose(names)});
  }
  if (random.chance() < 0.05) {
    cut_.clear();
  }
  if (random.chance() < 0.05) {
    const auto number = random.below(names.size());
    const bool exits = random.chance() < 0.5;
    servers_[number]->fail({exits ? wire::EndKind::exit : wire::EndKind::signal, 9});
  }
  if (random.chance() < 0.02) {
    servers_.front()->revive();
  }
  if (random.chance() < 0.02) {
    servers_[random.below(names.size())]->revive();
  }
  if (options.kills_guards && random.chance() < 0.01) {
    servers_[random.below(names.size())]->lose_guard();
  }
}

SimulatedServer::SimulatedServer(RestartWorld& world, std::string name)
    : world_(world), name_(std::move(name)), drift_(world.random.uniform(0.991, 1.0)) {
  const auto number = std::ranges::find(world.names, name_) - world.names.begin();
  if (number >= world.options.servers) {  // a spare
    attempt = 0;
    lives = false;
  }
  make();
}

void SimulatedServer::make() {
  rules::LaunchSetup setup{name_, world_.names, world_.options.grace, lease};
  rules::RestartSetup restarts;
  restarts.most = world_.options.most;
  restarts.least = world_.options.least;
  restarts.kinds = world_.options.kinds;
  restarts.final_codes = world_.options.final_codes;
  restarts.ranks.assign(world_.names.size(), 1);
  restarts.spares = static_cast<std::size_t>(world_.options.spares);
  const auto rank = static_cast<int>(std::ranges::find(world_.names, name_) - world_.names.begin());
  rules::LaunchJob job;
  job.id = "job-" + name_;
  job.rank = rank;
  job.round = round_;
  job.ended = ended_;
  std::optional<rules::Revived> revived;
  if (revived_) {
    revived = rules::Revived{*revived_, began_};
  }
  policy =
      std::make_unique<rules::RestartPolicy>(std::move(setup), std::move(restarts), std::vector{job}, attempt,
                                             question_, revived, clock(), *this, world_.options.times);
  const std::vector<wire::LaunchEntry> journal = journal_;
  for (const wire::LaunchEntry& entry : journal) {
    policy->restore(entry, clock());
  }
  if (!is_coordinator()) {
    world_.post(name_, world_.names.front(), wire::Hello{});
  }
  if (!has_guard_) {
    lose_guard();
  }
}

void SimulatedServer::revive() {
  revived_ = lease_until_;
  question_ = world_.random.below(1'000'000'000);
  kill_done_at_.reset();
  make();
}

void SimulatedServer::broadcast(const wire::LinkMessage& message) {
  for (const std::string& other : world_.names) {
    if (other != name_ && (is_coordinator() || other == world_.names.front())) {
      world_.post(name_, other, message);
    }
  }
}

void SimulatedServer::tell(const std::string& server, const wire::LinkMessage& message) {
  if (const auto* ask = std::get_if<wire::AskLease>(&message)) {
    last_question = ask->question;
  }
  world_.post(name_, server, message);
}

bool SimulatedServer::start(int number, const wire::Shape& shape) {
  if (lives || released) {
    throw std::logic_error("an attempt begins while another one lives");
  }
  if (!has_guard_) {
    return false;
  }
  attempt = number;
  lives = true;
  dies_at_.reset();
  began_ = clock();
  ++world_.restarts;
  starts.push_back(shape);
  return true;
}

void SimulatedServer::release(const wire::AttemptsOver& over, const std::vector<std::string>& /*ended*/) {
  released = true;
  no_restart = over.why;
}

wire::RankFailure SimulatedServer::describe_failure(const rules::LaunchJob& job) {
  wire::RankFailure failure{job.rank, name_, job.round->ending, after_peer, ""};
  if (mark) {
    failure.mark = *mark;
  } else {
    const std::string random_mark = "m" + std::to_string(world_.random.below(1'000'000));
    failure.mark = world_.random.choose({std::string("gpu"), std::string("disk"), random_mark});
  }
  return failure;
}

std::vector<std::string> SimulatedServer::checkpoints() {
  return {world_.checkpoint.value_or("c" + std::to_string(static_cast<int>(world_.now.count() / 10)))};
}

void SimulatedServer::record_attempt(int number, Seconds began, Seconds failed, Seconds /*next*/,
                                     const wire::Cause& cause, const std::vector<std::string>& without,
                                     bool sick) {
  world_.attempts.push_back({number, began, failed, cause, without, sick});
}

void SimulatedServer::mark_sick(const std::string& /*mark*/) {
  world_.sick.insert(name_);
}

void SimulatedServer::fail(wire::Ending ending) {
  if (lives && !dies_at_) {
    end_round(ending);
  }
}

void SimulatedServer::end_round(wire::Ending ending) {
  lives = false;
  failed_rank_.reset();
  dies_at_.reset();
  round_ = rules::Round{attempt, ending};
  policy->job(0).round = round_;
}

void SimulatedServer::stop() {
  lives = false;
  dies_at_.reset();
  ended_ = true;
  policy->note_end(0, std::nullopt, clock());
}

void SimulatedServer::lose_guard() {
  if (!released) {
    lives = false;
    dies_at_.reset();
    has_guard_ = false;
    policy->note_end(
        0, wire::RankFailure{policy->jobs().front().rank, name_, {wire::EndKind::gone, 0}, false, ""},
        clock());
  }
}

void SimulatedServer::pass_time() {
  if (lives && dies_at_ && world_.now >= *dies_at_) {
    end_round({wire::EndKind::signal, 15});
  }
  if (lives && !dies_at_ && clock() > lease_until_ && !is_stubborn) {  // the guard stops them
    dies_at_ = world_.now + Seconds(world_.random.uniform(0, longest_kill));
  }
  if (kill_done_at_ && world_.now >= *kill_done_at_) {
    kill_done_at_.reset();
    policy->note_killed(!lives, clock());
  }
}

void SimulatedServer::hear(const std::string& from, const wire::LinkMessage& message) {
  policy->hear(from, message, clock());
}

void SimulatedServer::work() {
  if (lives && failed_rank_) {
    policy->note_failed_rank(0, {policy->jobs().front().rank, name_, *failed_rank_, false, "m1"}, clock());
  }
  policy->tick(clock());
  if (policy->is_released()) {
    lives = lives && !policy->reason();
    return;
  }
  if (!kill_done_at_ && !policy->jobs_to_kill(clock()).empty()) {
    if (lives && !dies_at_ && !is_stubborn) {
      dies_at_ = world_.now + Seconds(world_.random.uniform(0, longest_kill));
    }
    kill_done_at_ = dies_at_.value_or(world_.now) + Seconds(0.5);
  }
}

}  // namespace remote::simulation
