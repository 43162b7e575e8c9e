import Testing

@testable import MusterWorker

@Suite struct CoreBudgetTests {
    @Test func helpersGetTheCoresThatAreLeft() {
        let budget = CoreBudget(cores: 3)
        budget.enter()
        #expect(budget.tryEnter())
        #expect(budget.tryEnter())
        #expect(!budget.tryEnter())
        budget.leave()
        #expect(budget.tryEnter())
    }

    @Test func workThatCannotWaitIsNotHeldUpButGetsNoHelpers() {
        let budget = CoreBudget(cores: 1)
        budget.enter()
        budget.enter()
        #expect(!budget.tryEnter())
        budget.leave()
        #expect(!budget.tryEnter())
        budget.leave()
        #expect(budget.tryEnter())
    }

    @Test(arguments: [(0, 1), (1, 1), (2, 1), (4, 3), (64, 5)])
    func aPoolOfHelpersIsAsLargeAsIsOfUse(cores: Int, helpers: Int) {
        #expect(CoreBudget(cores: cores).helpers == helpers)
    }
}
