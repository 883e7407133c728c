#include "core/cores.h"

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <map>
#include <thread>

#include "strobe/error.h"

namespace strobe {
namespace {

/// A machine of 16 cores, all of them allowed, with these variables in the environment.
CoreFacts facts(std::map<std::string, std::string> variables = {}, int allowed = 16,
                std::optional<double> quota = {}) {
  return {.variable = [variables = std::move(variables)](const char* name) -> const char* {
            const auto found = variables.find(name);
            return found == variables.end() ? nullptr : found->second.c_str();
          },
          .allowed = allowed,
          .present = 16,
          .quota = quota};
}

TEST(Cores, AllThatTheMaskAllows) {
  EXPECT_EQ(choose_threads(facts()).threads, 16);
  EXPECT_EQ(choose_threads(facts()).reason, "all 16 cores");
  const ThreadChoice narrowed = choose_threads(facts({}, 3));
  EXPECT_EQ(narrowed.threads, 3);
  EXPECT_EQ(narrowed.reason, "the affinity mask has 3 of 16 cores");
}

TEST(Cores, TheEnvironmentHasTheLastWord) {
  const ThreadChoice more =
      choose_threads(facts({{"STROBE_THREADS", "40"}, {"OMP_NUM_THREADS", "2"}}, 3, 1.0));
  EXPECT_EQ(more.threads, 40);
  EXPECT_EQ(more.reason, "STROBE_THREADS");
  EXPECT_EQ(choose_threads(facts({{"STROBE_THREADS", ""}})).threads, 16);
  for (const char* wrong : {"0", "-1", "many", "2x"}) {
    EXPECT_THROW(choose_threads(facts({{"STROBE_THREADS", wrong}})), InvalidArgument) << wrong;
  }
}

TEST(Cores, OpenMpsVariableOnlyLowersTheNumber) {
  const auto with = [](const char* value) {
    return choose_threads(facts({{"OMP_NUM_THREADS", value}}));
  };
  EXPECT_EQ(with("4").threads, 4);
  EXPECT_EQ(with("4").reason, "OMP_NUM_THREADS");
  EXPECT_EQ(with("6,2").threads, 6) << "the outer level of two";
  for (const char* other : {"64", "", "0", "-3", "all"}) EXPECT_EQ(with(other).threads, 16);
}

TEST(Cores, AreDividedAmongTheRanksOfANode) {
  const std::map<std::string, std::string> launchers[] = {
      {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}},
      {{"MPI_LOCALNRANKS", "4"}, {"MPI_LOCALRANKID", "2"}},
      {{"PMI_LOCAL_SIZE", "4"}, {"PMI_LOCAL_RANK", "2"}},
      {{"MV2_COMM_WORLD_LOCAL_SIZE", "4"}, {"MV2_COMM_WORLD_LOCAL_RANK", "2"}},
      {{"LOCAL_WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}},
      {{"SLURM_STEP_TASKS_PER_NODE", "8,4(x3)"}, {"SLURM_NODEID", "3"}, {"SLURM_LOCALID", "2"}}};
  for (const auto& variables : launchers) {
    const CoreShare share = share_of_cores(facts(variables));
    EXPECT_EQ(share.cores, 4) << variables.begin()->first;
    EXPECT_EQ(share.own, 4);
    EXPECT_EQ(share.first, 8) << "each rank has its own";
  }
  EXPECT_EQ(choose_threads(facts(launchers[0])).reason,
            "16 cores for 4 ranks on this node (Open MPI)");
}

std::map<std::string, std::string> ranks(const char* count, const char* mine) {
  return {{"OMPI_COMM_WORLD_LOCAL_SIZE", count}, {"OMPI_COMM_WORLD_LOCAL_RANK", mine}};
}

TEST(Cores, OneIsLeftForEachOfVeryManyRanks) {
  const CoreShare share = share_of_cores(facts(ranks("40", "17")));
  EXPECT_EQ(share.cores, 1);
  EXPECT_EQ(share.first, 1) << "rank 17 of 16 cores";
}

TEST(Cores, AMaskOfARanksOwnIsTakenAsItIs) {
  const CoreShare share = share_of_cores(facts(ranks("4", "2"), 4));
  EXPECT_EQ(share.cores, 4);
  EXPECT_EQ(share.first, 0);
  EXPECT_EQ(share_of_cores(facts(ranks("4", "2"), 2)).cores, 2);
}

TEST(Cores, AMaskThatRanksShareIsDividedToo) {
  const CoreShare share = share_of_cores(facts(ranks("8", "3"), 8));  // a socket of two
  EXPECT_EQ(share.cores, 2);
  EXPECT_EQ(share.first, 6);
}

TEST(Cores, LaunchersThatMakeNoSenseArePassedOver) {
  EXPECT_EQ(share_of_cores(facts({{"PMI_LOCAL_SIZE", "4"}})).cores, 16) << "which of the four?";
  EXPECT_EQ(share_of_cores(facts(ranks("4", "4"))).cores, 16);
  EXPECT_EQ(share_of_cores(facts(ranks("four", "1"))).cores, 16);
  for (const char* tasks : {"", "(x2)", "4(x2", "4(x)", "4(2)", "4"}) {
    const CoreFacts wrong = facts(
        {{"SLURM_STEP_TASKS_PER_NODE", tasks}, {"SLURM_NODEID", "1"}, {"SLURM_LOCALID", "0"}});
    EXPECT_EQ(share_of_cores(wrong).cores, 16) << tasks;
  }
  // A batch script is one process, whatever the job has asked for.
  EXPECT_EQ(share_of_cores(facts({{"SLURM_TASKS_PER_NODE", "4"},
                                  {"SLURM_NTASKS_PER_NODE", "4"},
                                  {"SLURM_NODEID", "0"},
                                  {"SLURM_LOCALID", "0"}}))
                .cores,
            16);
}

TEST(Cores, TheMpiLibraryIsBelievedBeforeSlurm) {
  auto variables = ranks("8", "1");
  variables.insert(
      {{"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}, {"SLURM_NODEID", "0"}, {"SLURM_LOCALID", "0"}});
  EXPECT_EQ(share_of_cores(facts(variables)).cores, 2);
}

TEST(Cores, AQuotaIsRoundedUpAndSharedByTheRanks) {
  const ThreadChoice choice = choose_threads(facts({}, 16, 1.5));
  EXPECT_EQ(choice.threads, 2);
  EXPECT_EQ(choice.reason, "the CPU quota of the control group is 1.5");
  EXPECT_EQ(choose_threads(facts({}, 16, 0.1)).threads, 1);
  EXPECT_EQ(choose_threads(facts({}, 16, 64.0)).threads, 16);
  const CoreShare share = share_of_cores(facts(ranks("2", "1"), 16, 6.0));
  EXPECT_EQ(share.cores, 3);
  EXPECT_EQ(share.own, 8) << "a quota is of time, not of places";
  EXPECT_EQ(share.first, 8);
}

TEST(Cores, OfNoProcessAreNotKnown) {
  EXPECT_FALSE(affinity_of(-1));
}

// Neither the main thread nor the one that asks may use more than one of them, but a third may.
TEST(Cores, OfSeveralThreadsAreThoseOfAny) {
  const auto all = affinity_of(0);
  ASSERT_TRUE(all);
  std::promise<void> asked;
  std::thread third([end = asked.get_future()] { end.wait(); });
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const auto of_any = affinity_of_threads("/proc/self/task");
  const auto of_this_one = affinity_of_threads("/nowhere");
  EXPECT_EQ(sched_setaffinity(0, sizeof *all, &*all), 0);
  asked.set_value();
  third.join();
  ASSERT_TRUE(of_any && of_this_one);
  EXPECT_TRUE(CPU_EQUAL(&*of_any, &*all));
  EXPECT_TRUE(CPU_EQUAL(&*of_this_one, &one));
}

TEST(Cores, SlotsOfTwoRanksAreApart) {
  const CoreShare second = share_of_cores(facts(ranks("2", "1")));
  EXPECT_EQ(core_of_slot(0, second, 16), 8);
  EXPECT_EQ(core_of_slot(7, second, 16), 15);
  EXPECT_EQ(core_of_slot(8, second, 16), 8) << "round and round";
  EXPECT_EQ(core_of_slot(-1, second, 16), 15) << "another caller";
  const CoreShare alone = share_of_cores(facts());
  EXPECT_EQ(core_of_slot(3, alone, 16), 3);
}

/// A folder that looks like the control groups'.
class ControlGroup : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }

  const std::filesystem::path root_ = testing::TempDir() + "strobe_cores_test_" +
                                      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ControlGroup, TheTightestQuotaOfTheGroupsAroundCounts) {
  const std::string groups = "0::/user/job\n";
  EXPECT_EQ(cpu_quota(groups, root_), std::nullopt);
  write("user/job/cpu.max", "max 100000");
  EXPECT_EQ(cpu_quota(groups, root_), std::nullopt);
  write("user/cpu.max", "250000 100000");
  EXPECT_EQ(cpu_quota(groups, root_), 2.5);
  write("user/job/cpu.max", "400000 100000");
  EXPECT_EQ(cpu_quota(groups, root_), 2.5);
}

TEST_F(ControlGroup, AContainerSeesItsOwnAtTheRoot) {
  write("cpu.max", "50000 100000");
  write("cpuset.cpus.effective", "0-3,8");
  EXPECT_EQ(cpu_quota("0::/docker/0123\n", root_), 0.5);
  EXPECT_EQ(cpuset_cores("0::/docker/0123\n", root_), 5);
}

TEST_F(ControlGroup, VersionOneHasAFolderForEachController) {
  const std::string groups = "4:cpuset:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n0::/\n";
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cpu_quota(groups, root_), std::nullopt);
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "300000");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cpu_quota(groups, root_), 3.0);
  write("cpuset/job/cpuset.cpus", "4-7");
  EXPECT_EQ(cpuset_cores(groups, root_), 4);
}

TEST_F(ControlGroup, WhatCannotBeReadSaysNothing) {
  write("cpu.max", "nonsense");
  write("cpuset.cpus.effective", "");
  EXPECT_EQ(cpu_quota("0::/\n", root_), std::nullopt);
  EXPECT_EQ(cpuset_cores("0::/\n", root_), std::nullopt);
  EXPECT_EQ(cpu_quota("", root_), std::nullopt);
}

}  // namespace
}  // namespace strobe
