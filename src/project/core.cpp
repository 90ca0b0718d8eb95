#include "project/core.hpp"

#include <algorithm>
#include <array>
#include <system_error>
#include <thread>

#include <poll.h>
#include <remote/project.hpp>

#include "base/error_of.hpp"
#include "base/files.hpp"
#include "ssh/pool.hpp"

namespace remote::project {

State::State(config::Config configuration, Hooks given, std::unique_ptr<ssh::Connector> connector)
    : config(std::move(configuration)), hooks(std::move(given)), store_folder(project::store_folder(config)) {
  if (connector) {
    connector_ = std::make_unique<ssh::Pool>(std::move(connector));
  }
  for (const std::string& warning : config.warnings) {
    if (hooks.on_event) {
      hooks.on_event(ConfigWarning{warning});
    }
  }
}

ssh::Connector& State::connector() {
  const std::lock_guard lock(connector_mutex_);
  if (!connector_) {
    ssh::ConnectorOptions options;
    if (hooks.ask_secret) {
      options.ask = [this](const std::string& prompt) {
        return ask<std::optional<std::string>>([&] { return hooks.ask_secret(prompt); });
      };
    }
    if (hooks.on_event) {
      options.on_new_host_key = [this](const NewHostKey& key) { put([this, key] { hooks.on_event(key); }); };
      options.on_login_problem = [this](const Error& error) {
        put([this, error] { hooks.on_event(LoginProblem{error}); });
      };
    }
    connector_ = std::make_unique<ssh::Pool>(ssh::make_connector(config, std::move(options)));
  }
  return *connector_;
}

void State::put(std::function<void()> news) {
  const std::lock_guard lock(calls_mutex_);
  news_.push_back(std::move(news));
  if (!calls_.empty()) {
    calls_.back()->callbacks_.wake();
  }
}

Core::Core(State& state, const std::optional<Cancel>& own)
    : config(state.config),
      hooks(state.hooks),
      state_(state),
      own_(own),
      store(state.store_folder, {}, stop_),
      in_question_([&] {
        const std::lock_guard lock(state.calls_mutex_);
        return state.asking_.contains(std::this_thread::get_id());
      }()) {
  const std::lock_guard lock(state_.calls_mutex_);
  state_.calls_.push_back(this);
}

Core::~Core() {
  const std::lock_guard lock(state_.calls_mutex_);
  std::erase(state_.calls_, this);
  if (!state_.news_.empty() && !state_.calls_.empty()) {  // posted while this call was ending
    state_.calls_.back()->callbacks_.wake();
  }
}

ssh::Connector& Core::connector() {
  require_trust();
  return state_.connector();
}

void Core::tell(const Event& event) {
  if (hooks.on_event) {
    callbacks_.post([this, event] { hooks.on_event(event); });
  }
}

void Core::settle() {
  auto done = std::make_shared<std::promise<void>>();
  const std::future<void> settled = done->get_future();
  callbacks_.post([done = std::move(done)] { done->set_value(); });
  settled.wait();
}

void Core::take_news() {
  for (;;) {
    std::function<void()> news;
    {
      const std::lock_guard lock(state_.calls_mutex_);
      if (state_.news_.empty()) {
        return;
      }
      news = std::move(state_.news_.front());
      state_.news_.pop_front();
    }
    callbacks_.run_now(news);
  }
}

void Core::stop_if_cancelled() {
  if (hooks.cancel.cancelled() || (own_ && own_->cancelled())) {
    stop_.cancel();
  }
}

void Core::take_turn() {
  take_news();  // including news that waited for an outer call to end
  const auto fd_of = [&](const Cancel& cancel) { return stop_.cancelled() ? -1 : cancel.fd(); };
  std::array<pollfd, 3> slots{{{callbacks_.fd(), POLLIN, 0},
                               {fd_of(hooks.cancel), POLLIN, 0},
                               {fd_of(own_ ? *own_ : hooks.cancel), POLLIN, 0}}};
  static_cast<void>(::poll(slots.data(), slots.size(), -1));
  stop_if_cancelled();
  take_news();
  callbacks_.run();
  if (callbacks_.failed()) {
    stop_.cancel();
  }
}

void Core::carry_out(const std::function<void()>& work) {
  stop_if_cancelled();  // before any server is contacted
  std::exception_ptr failure;
  std::atomic<bool> over = false;
  std::thread body;
  try {
    body = std::thread([&] {
      try {
        work();
      } catch (const Interrupted&) {
        failure = std::current_exception();
      } catch (const std::exception& error) {
        failure = std::make_exception_ptr(error_of(error));
      }
      over = true;
      callbacks_.wake();
    });
  } catch (const std::system_error& error) {
    throw error_of(error);
  }
  while (!over) {
    take_turn();
  }
  body.join();
  take_news();
  while (callbacks_.run()) {
  }
  callbacks_.rethrow();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace remote::project
