import Logging
import MusterAPI
import MusterCore
import MusterSystem
import ServiceLifecycle

/// Feeds a `WorkerMachine` and does what it asks for, until it says `stop`.
///
/// One loop owns the machine and all mutable state. Jobs, calls and alarms are children of one task group, which `run`
/// awaits. They reach the loop only through its inbox.
struct WorkerEngine: Sendable {
    /// An event in the loop's inbox.
    private enum Event: Sendable {
        /// An input for the machine.
        case input(MachineInput)
        /// An alarm that was set for this moment of the monotonic clock, in nanoseconds.
        case alarm(Int64)
    }

    private typealias Inbox = AsyncStream<Event>.Continuation

    private let configuration: WorkerConfiguration
    private let client: MusterClient
    private let gate: TrustGate
    private let loops: LoopSet
    private let stations: [SinkStation]
    private let checker: SinkChecker
    private let logger: Logger
    private let seed: UInt64

    /// An engine for loops and stations whose threads are running; `Worker.run` ends them. All its random choices follow from `seed`.
    init(
        configuration: WorkerConfiguration,
        client: MusterClient,
        gate: TrustGate,
        loops: LoopSet,
        stations: [SinkStation],
        checker: SinkChecker,
        logger: Logger,
        seed: UInt64 = .random(in: .min ... .max)
    ) {
        self.configuration = configuration
        self.client = client
        self.gate = gate
        self.loops = loops
        self.stations = stations
        self.checker = checker
        self.logger = logger
        self.seed = seed
    }

    /// Runs until a drain is complete or the task is cancelled. On cancellation all jobs are aborted and no lease is given back.
    func run() async {
        let (events, inbox) = AsyncStream.makeStream(of: Event.self)
        let context = JobContext(
            configuration: configuration,
            gate: gate,
            loops: loops,
            stations: stations,
            logger: logger,
            tell: { name, news in inbox.yield(.input(.job(name, news))) }
        )
        let sinks = await look()
        let machine = WorkerMachine(
            MachineConfiguration(
                name: configuration.name,
                version: configuration.version,
                labels: configuration.labels,
                sinks: sinks,
                slots: configuration.slots,
                bytesPerSecond: configuration.bytesPerSecond,
                progressDelay: configuration.progressInterval / 3
            ),
            seed: seed
        )
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                group.addTask { await context.checkpointer.run() }
                group.addTask { await watchCalls(inbox) }
                inbox.yield(.input(.tick))
                await loop(machine, context, events, inbox, &group)
                group.cancelAll()
            }
        } onGracefulShutdown: {
            inbox.yield(.input(.drain))
        }
        inbox.finish()
    }

    /// Looks at all sinks at once, and logs which of them are in trouble.
    private func look() async -> [SinkStatus] {
        await withTaskGroup(of: (Int, SinkStatus).self) { group in
            for (place, station) in stations.enumerated() {
                group.addTask {
                    let found = await station.look()
                    if case .trouble(let trouble) = found { log(.sinkParked(station.name, trouble)) }
                    return (place, SinkStatus(station.name, found))
                }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    /// Reports calls to sinks that don't return; runs until it is cancelled.
    private func watchCalls(_ inbox: Inbox) async {
        var before: [String: Int64] = [:]
        while (try? await MonotonicClock.sleep(for: .seconds(1))) != nil {
            for station in stations {
                let since = station.hangsSince
                // After the process was stopped, every call looks old but returns in a moment. So a call is reported only
                // when it is seen hanging twice.
                if let since, since == before[station.name] {
                    inbox.yield(.input(.sinkHangs(station.name, since: since)))
                }
                before[station.name] = since
            }
        }
    }

    private func loop(
        _ initial: WorkerMachine,
        _ context: JobContext,
        _ events: AsyncStream<Event>,
        _ inbox: Inbox,
        _ group: inout DiscardingTaskGroup
    ) async {
        var machine = initial
        var controls: [LeaseName: LeaseControl] = [:]
        var alarms: Set<Int64> = []
        events: for await event in events {
            var input = MachineInput.tick
            switch event {
            case .input(let known): input = known
            case .alarm(let moment): alarms.remove(moment)
            }
            if case .job(let name, .ended) = input { controls[name] = nil }
            var inputs: [MachineInput] = []
            let received = context.takeReceived()
            if received > 0 {
                inputs.append(.received(received))
                checker.noteTraffic()
            }
            let traffic = context.budgets.takeTraffic()
            if !traffic.isEmpty { inputs.append(.traffic(traffic)) }
            inputs.append(input)
            while !inputs.isEmpty {
                for effect in machine.step(inputs.removeFirst(), now: MonotonicClock.now()) {
                    if case .stop = effect { break events }
                    let answer = carryOut(effect, context, &controls, inbox, &group)
                    if let answer { inputs.insert(answer, at: 0) }
                }
            }
            // Set an alarm only if it is earlier than all pending ones. An alarm that turns out too early costs one empty step.
            if let deadline = machine.nextDeadline, deadline < alarms.min() ?? .max {
                alarms.insert(deadline)
                group.addTask {
                    await MonotonicClock.sleep(until: deadline)
                    inbox.yield(.alarm(deadline))
                }
            }
        }
        checker.stop()
        // Reached by `stop` or because the task was cancelled: no write may follow.
        for control in controls.values { control.ask(.abort) }
    }

    /// Carries out an effect. Returns an input that the machine must process before any other.
    private func carryOut(
        _ effect: MachineEffect,
        _ context: JobContext,
        _ controls: inout [LeaseName: LeaseControl],
        _ inbox: Inbox,
        _ group: inout DiscardingTaskGroup
    ) -> MachineInput? {
        switch effect {
        case .openSession(let request):
            group.addTask { if let input = await opener(inbox).open(request) { inbox.yield(.input(input)) } }
        case .sync(let session, let request):
            group.addTask { if let input = await sync(session, request, context) { inbox.yield(.input(input)) } }
        case .closeSession(let session):
            group.addTask {
                // If the session's directories can't be removed, the session expires instead, so that other sessions revoke it.
                if await endSinks() { try? await client.closeSession(session) }
                inbox.yield(.input(.sessionClosed))
            }
        // Nothing to do: the call has its own time limit, and the coordinator answers a superseded poll at once.
        case .abandonSync: break
        case .guardAddresses(let rule): context.sources.adopt(rule)
        case .share(let shares): context.budgets.adopt(shares)
        case .trust(let moment):
            if gate.open(until: moment) { resumeTransfers(controls) }
        // Nothing to do: every write asks the gate itself and pauses its transfer when the gate is closed.
        case .suspendWriting: break
        case .resumeWriting: resumeTransfers(controls)
        case .start(let lease, let seat):
            let control = LeaseControl(ChunkBound(lease), seat: seat)
            controls[lease.name] = control
            let job = LeaseJob(lease: lease, context: context, control: control)
            group.addTask {
                let ending = await job.run()
                inbox.yield(.input(.job(lease.name, .ended(ending))))
            }
        case .release(let name): controls[name]?.ask(.release)
        case .abort(let name): controls[name]?.ask(.abort)
        case .probe(let name):
            group.addTask {
                guard let station = context.station(name) else { return }
                inbox.yield(.input(.sinkProbed(name, await opener(inbox).probe(station))))
            }
        case .look(let order):
            guard let directory = context.station(order.sink)?.equipment?.directory else {
                return .checkFailed(order.name)
            }
            checker.look(at: order, in: directory) { inbox.yield(.input($0)) }
        case .stopLooking: checker.stop()
        case .log(let note): log(note)
        // Answer at once: the job may end in a moment, and the machine must know the new end of the chunk before that.
        case .shrink(let name, let wanted):
            guard let control = controls[name], let end = control.shrink(to: wanted) else { return nil }
            return .job(name, .shrunk(end: end, speed: control.bound.speed))
        case .giveBackUntouched(let name): controls[name]?.releaseIfUntouched()
        case .lengthen(let name, let wanted):
            return controls[name]?.bound.lengthen(to: wanted).map { .job(name, .shrunk(end: $0)) }
        case .stop: break
        }
        return nil
    }

    private func resumeTransfers(_ controls: [LeaseName: LeaseControl]) {
        for control in controls.values { control.resumeTransfer() }
    }
}

extension WorkerEngine {
    /// Opens sessions; what comes late goes to the inbox.
    private func opener(_ inbox: Inbox) -> SessionOpener {
        SessionOpener(
            configuration: configuration, client: client, stations: stations,
            late: { name, result in inbox.yield(.input(.sinkProbed(name, result))) })
    }

    /// Ends the session in every sink. Returns `true` if no other session has to revoke it.
    private func endSinks() async -> Bool {
        var isClean = true
        for station in stations where await !station.end() {
            isClean = false
            logger.warning("A session could not be ended in a sink", metadata: .init([.sink: station.name]))
        }
        return isClean
    }

    private func sync(_ session: SessionID, _ request: SyncRequest, _ context: JobContext) async -> MachineInput? {
        var request = request
        let revoked = context.takeRevoked()
        if !revoked.isEmpty { request.revoked = revoked }
        do {
            return .syncAnswered(session, sequence: request.sequence, try await client.sync(session, request))
        } catch {
            context.revoked(revoked)
            return CallFailure(error).map { .syncFailed(session, sequence: request.sequence, $0) }
        }
    }

    private func log(_ note: MachineNote) {
        switch note {
        case .sessionOpened(let id): logger.info("Session opened", metadata: .init([.session: "\(id)"]))
        case .sessionLost(let id):
            logger.warning("The session is over; what was held is dropped", metadata: .init([.session: "\(id)"]))
        case .unreachable(.refused(let reason)):
            logger.error("A coordinator refuses this worker, which goes on trying", metadata: .init([.reason: reason]))
        case .unreachable(.unreachable), .unreachable(.sessionGone): logger.warning("No coordinator can be reached")
        case .reachable: logger.info("A coordinator can be reached again")
        case .trustEnded: logger.warning("The session was not renewed in time; nothing is written until it is")
        case .trustRenewed: logger.info("The session is renewed; writing goes on")
        case .leaseLost(let name):
            logger.info("A lease was taken away", metadata: .init([.chunk: "\(name.chunk)", .epoch: "\(name.epoch)"]))
        case .reportRefused(let name, let reason):
            logger.error(
                "What was reported of a lease can't be stored; the lease has failed",
                metadata: .init([.chunk: "\(name.chunk)", .epoch: "\(name.epoch)", .reason: reason])
            )
        case .sinkParked(let sink, let trouble):
            logger.error(
                "A sink takes no more work for now",
                metadata: .init([.sink: sink, .kind: trouble.kind.rawValue, .reason: trouble.detail])
            )
        case .sinkRecovered(let sink): logger.info("A sink works again", metadata: .init([.sink: sink]))
        case .draining: logger.info("Draining: no more work is taken")
        case .drainCutShort(let leases):
            logger.warning("The drain ran out of time", metadata: .init([.leases: "\(leases)"]))
        }
    }
}

extension CallFailure {
    /// Classifies an error of the client; `nil` when the call was cancelled, since no caller waits for its result then.
    init?(_ error: any Error) {
        switch error {
        case is CancellationError: return nil
        case is Unreachable: self = .unreachable
        case let problem as Problem:
            switch problem.code {
            case .sessionNotFound: self = .sessionGone
            case .databaseUnavailable, .stopping, .busy: self = .unreachable
            case .invalidRequest, .tooLarge, .unauthorized, .forbidden, .foreignHost, .foreignOrigin,
                .unsupportedMediaType, .expectationFailed, .groupNotFound, .taskNotFound, .workerNotFound,
                .subscriptionNotFound, .deliveryNotFound, .consumerNotFound, .notFound, .methodNotAllowed, .groupExists,
                .subscriptionExists, .groupSealed, .groupFinished, .destinationTaken, .conflict, .eventsGone, .otherLog,
                .internal:
                let help =
                    problem.code == .unauthorized
                    ? "; start it with the workers' token of that coordinator (MUSTER_WORKER_TOKEN)" : ""
                self = .refused(problem.description + help)
            }
        default: self = .refused("\(error)")
        }
    }
}
