#include "config/trust.hpp"

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace remote::config {
namespace {

TEST(TrustStore, AllowsADemandAsItWasShownAndNoOther) {
  const TempFolder project;
  const TempFolder other;
  const Demand shown{Demand::Kind::password_command, "a", "pass show a", "me@a", "configs.yaml:6"};
  TrustStore store(project.path());
  EXPECT_FALSE(store.allows(shown));
  store.allow({shown});
  EXPECT_TRUE(store.allows(shown));

  Demand moved = shown;
  moved.place = "configs.yaml:7";
  EXPECT_TRUE(store.allows(moved)) << "the same in another line";
  std::vector<Demand> others(4, shown);
  others[0].kind = Demand::Kind::password_env;
  others[1].server = "b";
  others[2].value = "pass show b";
  others[3].to = "me@b";
  EXPECT_EQ(store.not_allowed(others).size(), others.size());
  EXPECT_FALSE(TrustStore(other.path()).allows(shown)) << "another project";

  store.forget();
  EXPECT_FALSE(store.allows(shown));
}

}  // namespace
}  // namespace remote::config
