#include "jobs/link_tokens.hpp"

#include <algorithm>

#include "base/hashing.hpp"

namespace remote::jobs {
namespace {

constexpr std::size_t token_digits = 64;

}  // namespace

wire::LinkTokens make_link_tokens(std::size_t servers) {
  wire::LinkTokens tokens;
  while (tokens.size() + 1 < servers) {
    tokens.push_back(random_hex(token_digits));
  }
  return tokens;
}

wire::LinkTokens select_link_tokens(const wire::LinkTokens& all, const std::vector<std::string>& servers,
                                    const std::string& own) {
  if (servers.empty() || own == servers.front()) {
    return all;
  }
  const auto number = static_cast<std::size_t>(std::ranges::find(servers, own) - servers.begin());
  return number <= all.size() ? wire::LinkTokens{all[number - 1]} : wire::LinkTokens{};
}

}  // namespace remote::jobs
