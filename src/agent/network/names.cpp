#include "agent/network/names.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <utility>

#include "agent/host/background.hpp"
#include "agent/host/name_service.hpp"

namespace remote::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds all_names_limit{5};
constexpr std::size_t names_at_once = 64;
constexpr std::size_t most_of_a_name = 8;

std::vector<IpAddress> resolve_name(const Host& host, const std::string& name, steady_clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now());
  std::vector<IpAddress> found;
  for (const std::string& text : look_up_name(host, name, left)) {
    auto address = IpAddress::parse(text.substr(0, text.find('%')));
    const bool is_new = address && std::ranges::none_of(found, [&](const IpAddress& each) {
                          return each.text() == address->text();
                        });
    if (is_new && found.size() < most_of_a_name) {
      found.push_back(std::move(*address));
    }
  }
  return found;
}

}  // namespace

std::vector<std::vector<IpAddress>> resolve_names(const Host& host, const std::vector<std::string>& names) {
  std::vector<std::vector<IpAddress>> found(names.size());
  std::vector<std::size_t> unknown;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (auto address = IpAddress::parse(names[i])) {
      if (!address->has_zone() || address->index() != 0) {
        found[i].push_back(std::move(*address));
      }
    } else {
      unknown.push_back(i);
    }
  }
  const auto end = steady_clock::now() + all_names_limit;
  std::atomic<std::size_t> next = 0;
  std::list<BackgroundWork> threads;
  while (threads.size() < std::min(unknown.size(), names_at_once)) {
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < unknown.size(); i = next++) {
        found[unknown[i]] = resolve_name(host, names[unknown[i]], end);
      }
    });
  }
  for (BackgroundWork& thread : threads) {
    thread.wait();
  }
  return found;
}

}  // namespace remote::agent
